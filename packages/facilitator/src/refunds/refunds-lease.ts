import { createSingleFlight } from "@coinslot/concurrency";
import type { Lease } from "@coinslot/storage";
import type { SettlementContext } from "../settle/context.ts";

/** The lease under which one process of a ledger moves refunds along. */
export interface RefundsLease {
  /** Takes or renews it. Resolves to whether it is held here. */
  hold(): Promise<boolean>;
  /** Gives it to another process at once. */
  release(): Promise<void>;
}

export function createRefundsLease({
  ledger,
  logger,
  times,
}: Pick<SettlementContext, "ledger" | "logger" | "times">): RefundsLease {
  // Longer than that of a relayer: a step waits for nodes and a signer.
  const ttlMs = 4 * times.leaseMs;
  let lease: Lease | undefined;
  const holding = createSingleFlight(async () => {
    const held = lease && (await ledger.leases.renew(lease, { ttlMs }));
    const { processId: owner } = ledger;
    lease = held ?? (await ledger.leases.acquire({ name: "coinslot:refunds", owner, ttlMs }));
    return lease !== undefined;
  });
  return {
    hold: holding.join,
    async release() {
      const held = lease;
      lease = undefined;
      if (held === undefined) return;
      await ledger.leases
        .release(held)
        .catch((err: unknown) => logger.warn({ err }, "the lease of refunds was not released"));
    },
  };
}
