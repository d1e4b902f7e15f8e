import type { AuthorizationId } from "@coinslot/protocol";

/** Reason why a payer must wait, and its duration. */
export interface PayerLimit {
  retryAfterSeconds: number;
  /** The payer's own requests block it, and may be paid for at any moment. */
  isRunning: boolean;
}

/** Counts the unpaid handler runs of each payer, and its paid ones. */
export interface ReleaseLimit {
  /**
   * Returns the limit if a payer must wait before a handler runs for it.
   *
   * @param running handlers that run for it now: each is free until it is paid for
   */
  limitOf(request: { id: AuthorizationId; value: bigint }, running: number): PayerLimit | undefined;
  countFree(payer: string): void;
  countPaid(request: { id: AuthorizationId; value: bigint }): void;
}

interface PaidRun {
  at: number;
  purse: string;
  value: bigint;
}

const minuteMs = 60_000;
/** Newest paid runs of a payer that are remembered: they allow half as many free ones. */
const maxPaidRuns = 1_000;

/** A limit on free runs per payer and minute. It remembers the payers of two minutes at most. */
export function createReleaseLimit(options: {
  /** Free runs in any case. */
  perMinute: number;
  /** Or, if that is more, this share of the payer's paid runs of a minute, for as much or more. */
  shareOfPaid: number;
  /** Unix milliseconds. */
  now: () => number;
}): ReleaseLimit {
  const { perMinute, shareOfPaid, now } = options;
  let minute = 0;
  let free = new Map<string, number>();
  let paid = new Map<string, PaidRun[]>();

  function turnMinute(): void {
    const current = Math.floor(now() / minuteMs);
    if (current === minute) return;
    minute = current;
    free = new Map();
    const isRecent = ({ at }: PaidRun) => at > now() - minuteMs;
    paid = new Map([...paid].filter(([, runs]) => runs.some(isRecent)));
  }

  function countEarned({ id, value }: { id: AuthorizationId; value: bigint }): number {
    const purse = purseOf(id);
    const counts = (run: PaidRun) =>
      run.at > now() - minuteMs && run.purse === purse && run.value >= value;
    return Math.floor((paid.get(id.payer) ?? []).filter(counts).length * shareOfPaid);
  }

  return {
    limitOf(request, running) {
      turnMinute();
      const released = free.get(request.id.payer) ?? 0;
      if (released + running < perMinute) return undefined;
      const allowed = Math.max(perMinute, countEarned(request));
      if (released + running < allowed) return undefined;
      if (released < allowed) return { retryAfterSeconds: 1, isRunning: true };
      const endsAt = (minute + 1) * minuteMs;
      return { retryAfterSeconds: Math.ceil((endsAt - now()) / 1000), isRunning: false };
    },
    countFree(payer) {
      turnMinute();
      free.set(payer, (free.get(payer) ?? 0) + 1);
    },
    countPaid({ id, value }) {
      turnMinute();
      const runs = paid.get(id.payer) ?? [];
      runs.push({ at: now(), purse: purseOf(id), value });
      if (runs.length > maxPaidRuns) runs.shift();
      paid.set(id.payer, runs);
    },
  };
}

function purseOf({ network, asset }: AuthorizationId): string {
  return `${network}/${asset}`;
}
