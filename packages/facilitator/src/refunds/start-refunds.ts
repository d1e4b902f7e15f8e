import { createSingleFlight } from "@coinslot/concurrency";
import type { Network } from "@coinslot/protocol";
import type { Lease } from "@coinslot/storage";
import type { RefundSettings } from "../configuration/refund-options.ts";
import { findDueRefunds, moveRefund, type RefundChange } from "../ledger/refunds/move-refund.ts";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import { hasDueRefundable, refundUndelivered } from "../ledger/refunds/refund-undelivered.ts";
import type { SettlementContext } from "../settle/context.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { createTokenFactsCache } from "../token/token-facts-cache.ts";
import { advanceRefund } from "./advance-refund.ts";
import { later, looks, type RefundsContext } from "./refunds-context.ts";
import { reportRefunds } from "./report-refunds.ts";

/** Between two reads of the refunds that are due: one statement, where there are none. */
const restMs = 1_000;
const maxAtOnce = 50;

/** The refunds of one process. */
export interface RefundsWorker {
  readonly refunds: RefundsContext;
  /** Looks at the refunds that are due, now. */
  wake(): void;
  stop(): Promise<void>;
}

/**
 * Moves refunds along, one process of the ledger at a time. The lease only saves work: each step
 * names the row as it was read, and a nonce is executed once. A process may die at any step.
 */
export function startRefunds(options: {
  context: SettlementContext;
  settings: RefundSettings;
  settlements: ReadonlyMap<Network, NetworkSettlement>;
}): RefundsWorker {
  const { context, settings, settlements } = options;
  const { ledger, clock, logger } = context;
  const facts = new Map(
    [...settlements].map(([network, settlement]) => [
      network,
      createTokenFactsCache({ rpc: settlement.network.rpc, now: context.now }),
    ]),
  );
  const refunds: RefundsContext = {
    context,
    settings,
    settlements,
    async readFacts({ network, asset }) {
      const read = facts.get(network);
      if (read === undefined) throw new TypeError(`${network} is not served here`);
      return read(asset);
    },
  };
  // Longer than that of a relayer: a step waits for nodes and a signer.
  const leaseMs = 4 * context.times.leaseMs;
  let lease: Lease | undefined;
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;

  async function holdLease(): Promise<boolean> {
    const held = lease && (await ledger.leases.renew(lease, { ttlMs: leaseMs }));
    const { processId: owner } = ledger;
    lease =
      held ?? (await ledger.leases.acquire({ name: "coinslot:refunds", owner, ttlMs: leaseMs }));
    return lease !== undefined;
  }

  async function work(): Promise<void> {
    const now = ledger.now();
    const networks = [...settlements.keys()];
    const due = await findDueRefunds(ledger, { now, networks, limit: maxAtOnce });
    const hasUndelivered = await hasDueRefundable(ledger, now);
    if ((due.length === 0 && !hasUndelivered) || !(await holdLease())) return;
    if (hasUndelivered) {
      for (const row of await refundUndelivered(ledger, settings)) reportRefunds(refunds, row, row);
    }
    for (const row of due) {
      if (isStopped || !(await holdLease())) return;
      await look(row);
    }
    if (due.length === maxAtOnce) working.trigger();
  }

  async function look(row: RefundRow): Promise<void> {
    let change: RefundChange | undefined;
    try {
      change = await advanceRefund(refunds, row);
    } catch (err) {
      logger.warn({ err, refund: row.id }, "a refund could not be moved along; retrying");
      const { state, cause } = row;
      change = later(refunds, looks.waiting, { state, cause });
    }
    if (change !== undefined) await moveRefund(ledger, row, change);
    if (change?.state === row.state && change.cause === row.cause) return;
    reportRefunds(refunds, row, change);
  }

  const working = createSingleFlight(async () => {
    try {
      await work();
    } catch (err) {
      if (!isStopped) logger.warn({ err }, "refunds could not be moved along; retrying");
    }
    cancelTimer?.();
    if (!isStopped) cancelTimer = clock.setTimer(working.trigger, restMs);
  });
  working.trigger();
  return {
    refunds,
    wake: working.trigger,
    async stop() {
      isStopped = true;
      cancelTimer?.();
      await working.stop();
      cancelTimer?.();
      const held = lease;
      lease = undefined;
      if (held) {
        await ledger.leases
          .release(held)
          .catch((err: unknown) => logger.warn({ err }, "the lease of refunds was not released"));
      }
    },
  };
}
