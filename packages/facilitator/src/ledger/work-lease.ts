import { createSingleFlight } from "@coinslot/concurrency";
import type { Lease } from "@coinslot/storage";
import type { Logger } from "../logger.ts";
import type { LedgerContext } from "./ledger-context.ts";

/**
 * A lease under which one process of a ledger does a periodic work, such as the planning of claims.
 * It saves gas and work alone: guarded statements make the work safe in several processes at once.
 */
export interface WorkLease {
  /** Takes or renews it. Resolves to whether it is held here. */
  hold(): Promise<boolean>;
  /** Gives it to another process at once. Never rejects. */
  release(): Promise<void>;
}

/** Creates a lease that is not held yet. @param name the work's, among the leases of the ledger */
export function createWorkLease(
  {
    ledger,
    logger,
    times,
  }: {
    ledger: Pick<LedgerContext, "leases" | "processId">;
    logger: Pick<Logger, "warn">;
    /** `leaseMs`: duration of a relayer's lease. */
    times: { leaseMs: number };
  },
  name: string,
): WorkLease {
  // Longer than that of a relayer: a step waits for nodes and a signer.
  const ttlMs = 4 * times.leaseMs;
  let lease: Lease | undefined;
  const holding = createSingleFlight(async () => {
    const held = lease && (await ledger.leases.renew(lease, { ttlMs }));
    lease = held ?? (await ledger.leases.acquire({ name, owner: ledger.processId, ttlMs }));
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
        .catch((err: unknown) => logger.warn({ err, lease: name }, "a lease was not released"));
    },
  };
}
