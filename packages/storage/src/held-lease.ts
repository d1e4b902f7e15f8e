import type { Lease, Leases } from "./leases.ts";

export interface AcquireLeaseOptions {
  leases: Pick<Leases, "acquire" | "renew" | "release">;
  name: string;
  /** Unique for each running process. */
  owner: string;
  /** Duration of the lease without a renewal. It is renewed four times as often. */
  ttlMs: number;
  /** Monotonic milliseconds, and timers. */
  clock: { now(): number; setTimer(run: () => void, delayMs: number): () => void };
  /** Called once when the lease is over, unless it was released. */
  onLost: () => void;
  /** Called when a renewal fails. The lease survives that until its time is over. */
  onError: (error: unknown) => void;
}

/** A lease that is renewed until it is lost or released. */
export interface HeldLease {
  /** Its epoch is the fencing token. The database checks it on every write under the lease. */
  readonly lease: Lease;
  /** Called when a guard has returned that the lease is over. */
  lose(): void;
  /** Ends the renewals, waits for the last one, and ends the lease. Harmless after a loss. */
  release(): Promise<void>;
}

/**
 * Takes a lease if it is free, else returns `undefined`, and renews it.
 *
 * ```text
 *                       renewed
 *                       ┌─────┐
 *            acquire    │     ▼    release
 *   (free) ───────────► held ─────────────► released
 *                        │
 *                        │ refused renewal, `lose`, or the end of its time without a renewal
 *                        ▼
 *                       lost
 * ```
 *
 * The time counts from the moment at which the last successful renewal was asked for, on this
 * process's clock. The database counts from a later moment. So a lease is lost here before another
 * process can have it.
 *
 * | Race | Why it is safe |
 * |---|---|
 * | A renewal that hangs, and the end of the lease's time | The deadline is a timer of its own: the lease is lost without an answer |
 * | A renewal that succeeds after the loss | It is ended, so that the next acquisition need not wait for its time |
 * | An answer and the deadline, both due after a stall of the event loop | The answer is read first |
 * | A renewal under way, and `release` | `release` comes second, whatever the renewal has done |
 * | An owner that slept past its time, and its successor | The epoch differs, and guards refuse the old one |
 */
export async function acquireLease(options: AcquireLeaseOptions): Promise<HeldLease | undefined> {
  const { leases, name, owner, ttlMs, clock } = options;
  const askedAt = clock.now();
  const lease = await leases.acquire({ name, owner, ttlMs });
  if (lease === undefined) return undefined;
  const holding: Holding = {
    ...options,
    lease,
    endsAt: askedAt + ttlMs,
    state: "held",
    renewing: undefined,
    cancelRenewal: () => undefined,
    cancelDeadline: () => undefined,
  };
  scheduleRenewal(holding);
  scheduleDeadline(holding);
  return {
    lease,
    lose: () => lose(holding),
    release: () => release(holding),
  };
}

interface Holding extends AcquireLeaseOptions {
  readonly lease: Lease;
  /** On the clock of this process. */
  endsAt: number;
  state: "held" | "lost" | "released";
  renewing: Promise<void> | undefined;
  cancelRenewal: () => void;
  cancelDeadline: () => void;
}

function scheduleRenewal(holding: Holding): void {
  holding.cancelRenewal = holding.clock.setTimer(() => {
    holding.renewing = renew(holding);
  }, holding.ttlMs / 4);
}

function scheduleDeadline(holding: Holding): void {
  const { clock, endsAt } = holding;
  holding.cancelDeadline = clock.setTimer(
    () => {
      // After a stall the timer is due before the answer that came meanwhile has been read.
      setImmediate(() => holding.endsAt === endsAt && lose(holding));
    },
    Math.max(0, endsAt - clock.now()),
  );
}

async function renew(holding: Holding): Promise<void> {
  const { leases, lease, ttlMs, clock, onError } = holding;
  const askedAt = clock.now();
  try {
    const renewed = await leases.renew(lease, { ttlMs });
    if (holding.state === "lost" && renewed !== undefined) await leases.release(lease);
    if (holding.state !== "held") return;
    if (renewed === undefined) return lose(holding);
    holding.endsAt = askedAt + ttlMs;
    holding.cancelDeadline();
    scheduleDeadline(holding);
  } catch (error) {
    if (holding.state !== "held") return;
    onError(error);
  }
  scheduleRenewal(holding);
}

function lose(holding: Holding): void {
  if (holding.state !== "held") return;
  end(holding, "lost");
  holding.onLost();
}

async function release(holding: Holding): Promise<void> {
  if (holding.state !== "held") return;
  end(holding, "released");
  await holding.renewing;
  await holding.leases.release(holding.lease);
}

function end(holding: Holding, state: "lost" | "released"): void {
  holding.state = state;
  holding.cancelRenewal();
  holding.cancelDeadline();
}
