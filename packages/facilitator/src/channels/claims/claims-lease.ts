import type { Lease } from "@coinslot/storage";
import type { ChannelsContext } from "../channels-context.ts";

/**
 * A lease under which one process of a ledger plans claims on a network, or carries refunds on: one
 * with a relayer. It saves gas and work alone, since a claim that is sent twice is paid once, and a
 * refund is stored once.
 */
export interface ClaimsLease {
  /** Takes or renews it. Resolves to whether it is held here. */
  hold(): Promise<boolean>;
  /** Gives it to another process at once. */
  release(): Promise<void>;
}

export function createClaimsLease(
  {
    context: { ledger, logger, times },
    place: { network },
  }: Pick<ChannelsContext, "context" | "place">,
  work: "claims" | "refunds" = "claims",
): ClaimsLease {
  const ttlMs = 4 * times.leaseMs;
  let lease: Lease | undefined;
  return {
    async hold() {
      const held = lease && (await ledger.leases.renew(lease, { ttlMs }));
      const name = `channels:${work}:${network}`;
      lease = held ?? (await ledger.leases.acquire({ name, owner: ledger.processId, ttlMs }));
      return lease !== undefined;
    },
    async release() {
      const held = lease;
      lease = undefined;
      if (held === undefined) return;
      await ledger.leases
        .release(held)
        .catch((err: unknown) => logger.warn({ err }, `the lease of ${work} was not released`));
    },
  };
}
