import type { Clock } from "@coinslot/chain";
import { createSingleFlight } from "@coinslot/concurrency";
import { acquireLease, type HeldLease, type Lease, type Leases } from "@coinslot/storage";
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
  /** False: acquired by `take` alone. Default true: whenever it is free. */
  isEager?: boolean | undefined;
}

/** Holds a lease for as much of the time as it is free, or as it is wanted. */
export interface LeaseKeeper {
  /** The lease, as known to this process. The database checks it on every write under it. */
  current(): Lease | undefined;
  /** Called when the database or the lease's guard has returned that it is over. */
  lost(lease: Lease): void;
  /** Acquires the lease if it is free. */
  take(): Promise<void>;
  /** Gives the lease back, until `take`. */
  giveBack(): Promise<void>;
  /** Gives the lease back for good. */
  stop(): Promise<void>;
}

/** Starts to acquire the lease, and to acquire it again after each loss, if it is eager. */
export function keepLease(options: LeaseKeeperOptions): LeaseKeeper {
  const { ttlMs, clock, logger, onChange, isEager = true } = options;
  let held: HeldLease | undefined;
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;
  const acquiring = createSingleFlight(acquire);
  if (isEager) acquiring.trigger();

  async function acquire(): Promise<void> {
    cancelTimer?.();
    if (held !== undefined || isStopped) return;
    try {
      held = await acquireLease({ ...options, onLost, onError });
      if (held !== undefined) onChange(held.lease);
    } catch (error) {
      onError(error);
    }
    if (isEager && held === undefined && !isStopped) {
      cancelTimer = clock.setTimer(acquiring.trigger, ttlMs / 4);
    }
  }

  function onLost(): void {
    held = undefined;
    onChange(undefined);
    if (isEager) acquiring.trigger();
  }

  function onError(err: unknown): void {
    logger.warn({ err, lease: options.name }, "the lease could not be renewed");
  }

  async function giveBack(): Promise<void> {
    const last = held;
    if (last === undefined) return;
    held = undefined;
    onChange(undefined);
    await last.release();
  }

  return {
    current: () => held?.lease,
    lost(over) {
      if (held?.lease.epoch === over.epoch) held.lose();
    },
    take: acquiring.next,
    giveBack,
    async stop() {
      isStopped = true;
      cancelTimer?.();
      await acquiring.stop();
      cancelTimer?.();
      await giveBack();
    },
  };
}
