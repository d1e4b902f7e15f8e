import type { Clock } from "@coinslot/chain";
import { createSingleFlight } from "@coinslot/concurrency";
import type { Lease, Leases } from "@coinslot/storage";
import type { Logger } from "../../logger.ts";

export interface LeaseKeeperOptions {
  leases: Leases;
  name: string;
  owner: string;
  /** Duration of the lease without a renewal. */
  ttlMs: number;
  clock: Clock;
  logger: Logger;
  /** Called when the lease has been taken, with it; again with `undefined` when it is over. */
  onChange: (lease: Lease | undefined) => void;
  /** Called whenever the database has answered, after `onChange`. */
  onAnswer?: (() => void) | undefined;
}

/** Holds a lease for as much of the time as it is free. */
export interface LeaseKeeper {
  /** The lease, as known to this process. The database checks it on every write under it. */
  current(): Lease | undefined;
  /** Called when the database or the lease's guard has returned that it is over. */
  lost(lease: Lease): void;
  /** Gives the lease back. */
  stop(): Promise<void>;
}

/** Starts to acquire the lease, and to acquire it again after each loss. */
export function keepLease(options: LeaseKeeperOptions): LeaseKeeper {
  const { leases, name, owner, ttlMs, clock, logger, onChange, onAnswer } = options;
  let lease: Lease | undefined;
  let renewedAt = 0;
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;
  const work = createSingleFlight(takeOrRenew);
  work.trigger();

  function change(next: Lease | undefined): void {
    const isSame = next?.epoch === lease?.epoch;
    lease = next;
    if (!isSame) onChange(next);
  }

  async function takeOrRenew(): Promise<void> {
    const askedAt = clock.now();
    try {
      const next = lease
        ? await leases.renew(lease, { ttlMs })
        : await leases.acquire({ name, owner, ttlMs });
      if (next) renewedAt = askedAt;
      change(next);
      onAnswer?.();
    } catch (error) {
      logger.warn({ err: error, lease: name }, "the lease could not be renewed");
      // A failed renewal does not end the lease: until its time has passed, no other process can
      // have it.
      if (lease && clock.now() - renewedAt > ttlMs) change(undefined);
    }
    cancelTimer?.();
    if (!isStopped) cancelTimer = clock.setTimer(work.trigger, ttlMs / 4);
  }

  return {
    current: () => lease,
    lost(over) {
      if (lease?.epoch !== over.epoch) return;
      change(undefined);
      work.trigger();
    },
    async stop() {
      isStopped = true;
      cancelTimer?.();
      await work.stop();
      cancelTimer?.();
      const held = lease;
      change(undefined);
      if (held) await leases.release(held);
    },
  };
}
