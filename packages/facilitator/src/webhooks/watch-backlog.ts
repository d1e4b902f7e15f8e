import { createSingleFlight } from "@coinslot/concurrency";
import { dropLostListeners, giveUpUntaken, healClock, readBacklog } from "@coinslot/storage";
import { maxRetryDelayMs } from "@coinslot/webhooks";
import { sql } from "kysely";
import type { SettlementContext } from "../settle/context.ts";
import { claimMs } from "./start-delivering.ts";

const pauseMs = 15_000;
/** Longer than what may be replayed is kept: a replay is claimed first. */
const untakenMs = 120 * 86_400_000;
/** Rows of one step: few enough to delay no writer. */
const limit = 500;
/** A database's clock that falls back by this is put back. Corrections are less. */
const toleranceMs = 2_000;

/**
 * Keeps the metrics of what waits for each receiver, and ends lost listeners. Ends what no process
 * has claimed for long. Makes everything due where the database's clock was put back: it would wait
 * for that time to come again.
 */
export function watchBacklog(
  {
    ledger,
    metrics,
    clock,
    logger,
  }: Pick<SettlementContext, "ledger" | "metrics" | "clock" | "logger">,
  endpoints: readonly string[],
): { stop(): Promise<void> } {
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;
  /** Difference of both clocks. Before the first look, any may have been put back. */
  let offsetMs = Number.POSITIVE_INFINITY;

  async function look(): Promise<void> {
    const { rows } = await sql<{ now: number }>`
      select ${ledger.dialect.nowMs()} as now
    `.execute(ledger.db);
    const newOffsetMs = (rows[0]?.now ?? 0) - clock.now();
    const isPutBack = newOffsetMs < offsetMs - toleranceMs;
    offsetMs = newOffsetMs;
    await dropLostListeners(ledger);
    await giveUp();
    for (const endpoint of endpoints) {
      if (isPutBack) await healClock(ledger, { endpoint, claimMs, waitMs: maxRetryDelayMs });
      const { pending, dead, oldestPendingMs = 0 } = await readBacklog(ledger, endpoint);
      metrics.webhooksPending.set({ endpoint }, pending);
      metrics.webhooksDead.set({ endpoint }, dead);
      metrics.webhooksOldest.set({ endpoint }, oldestPendingMs / 1_000);
    }
  }

  /** A receiver may be configured in the ledger, and in no process that runs. */
  async function giveUp(): Promise<void> {
    while (!isStopped) {
      const given = await giveUpUntaken(ledger, { untakenMs, limit });
      if (given.size === 0) return;
      for (const [endpoint, count] of given)
        logger.error(
          { endpoint, count },
          "webhooks are dead: no process delivers to this receiver",
        );
    }
  }

  const working = createSingleFlight(async () => {
    try {
      await look();
    } catch (err) {
      logger.warn({ err }, "waiting webhooks could not be counted; retrying");
    }
    if (!isStopped) cancelTimer = clock.setTimer(working.trigger, pauseMs);
  });
  working.trigger();
  return {
    async stop() {
      isStopped = true;
      cancelTimer?.();
      await working.stop();
      cancelTimer?.();
    },
  };
}
