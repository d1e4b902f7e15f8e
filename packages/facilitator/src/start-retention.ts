import { createSingleFlight } from "@coinslot/concurrency";
import type { Lease } from "@coinslot/storage";
import type { LedgerContext } from "./ledger/ledger-context.ts";
import type { RetentionTimes } from "./ledger/ledger-limits.ts";
import { runsOlderProgram } from "./ledger/maintenance/processes.ts";
import { type RetentionStep, retentionSteps } from "./ledger/maintenance/retention-steps.ts";
import type { SettlementContext } from "./settle/context.ts";

/** Pause for other writers after a step: at least this, and nine times its duration. */
const minPauseMs = 20;
const pausesPerStep = 9;
/** Heartbeat leases between two passes: a minute by default. */
const leasesBetweenPasses = 6;
/** Between two whole passes: those that also walk over all payers and names. */
const wholeEveryMs = 6 * 3_600_000;
/** After the death of a process in its pass, the next one begins within this time. */
const leaseMs = 10 * 60_000;

/**
 * Ends what the ledger need not keep any more, in small steps beside the traffic.
 *
 * ```text
 *              every minute, one process of the ledger
 *   resting ──────────────────────────────────────────► archive payments ─► prune transactions
 *      ▲                                                                          │
 *      └── give space back ◄── forget names ◄── forget archived ◄── forget payers ◄─┘
 * ```
 *
 * Payments and names are forgotten with `keepPaymentsDays` alone, payers and names every six hours.
 * Each walks to the end of the old rows, step by step. The lease only saves work: two processes
 * that walk at once change nothing.
 */
export function startRetention(options: {
  context: Pick<SettlementContext, "ledger" | "clock" | "logger">;
  times: RetentionTimes;
  heartbeatLeaseMs: number;
}): { stop(): Promise<void> } {
  const { ledger, clock, logger } = options.context;
  const restMs = leasesBetweenPasses * options.heartbeatLeaseMs;
  let pass: Pass | undefined;
  let wholeDueAt = clock.now();
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;

  async function work(): Promise<number> {
    const isWhole = clock.now() >= wholeDueAt;
    pass ??= await beginPass(ledger, options.times, isWhole);
    const [step] = pass?.steps ?? [];
    if (pass === undefined || step === undefined) {
      if (pass?.isWhole) wholeDueAt = clock.now() + wholeEveryMs;
      await endPass();
      return restMs;
    }
    const startedAt = clock.now();
    if ((await step()) === "done") pass.steps.shift();
    return Math.max(minPauseMs, pausesPerStep * (clock.now() - startedAt));
  }

  async function endPass(): Promise<void> {
    const ended = pass;
    pass = undefined;
    try {
      if (ended) await ledger.leases.release(ended.lease);
    } catch (err) {
      logger.warn({ err }, "the lease of retention was not released; it ends by itself");
    }
  }

  const working = createSingleFlight(async () => {
    let delayMs = restMs;
    try {
      delayMs = await work();
    } catch (err) {
      logger.warn({ err }, "old payments could not be pruned; retrying");
    }
    if (!isStopped) cancelTimer = clock.setTimer(working.trigger, delayMs);
  });
  working.trigger();
  return {
    async stop() {
      isStopped = true;
      cancelTimer?.();
      await working.stop();
      cancelTimer?.();
      await endPass();
    },
  };
}

/** One walk over all old rows. */
interface Pass {
  readonly lease: Lease;
  /** The walks that are left of it. */
  readonly steps: RetentionStep[];
  readonly isWhole: boolean;
}

/** A program of the previous release looks for payments and names where they were. */
async function beginPass(
  ledger: LedgerContext,
  times: RetentionTimes,
  isWhole: boolean,
): Promise<Pass | undefined> {
  if (await runsOlderProgram(ledger)) return undefined;
  const lease = await ledger.leases.acquire({
    name: "coinslot:retention",
    owner: ledger.processId,
    ttlMs: leaseMs,
  });
  return lease && { lease, isWhole, steps: retentionSteps(ledger, times, { isWhole }) };
}
