import type { AuthorizationId } from "@coinslot/protocol";

/** Wait that the limit of free runs imposes on a payer. */
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
  /** Network and token. */
  balanceKey: string;
  value: bigint;
}

const minuteMs = 60_000;
/** Paid runs remembered per payer; the oldest are dropped first. */
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
    const balanceKey = balanceKeyOf(id);
    const counts = (run: PaidRun) =>
      run.at > now() - minuteMs && run.balanceKey === balanceKey && run.value >= value;
    return Math.floor((paid.get(id.payer) ?? []).filter(counts).length * shareOfPaid);
  }

  return {
    limitOf(request, running) {
      turnMinute();
      const freeRuns = free.get(request.id.payer) ?? 0;
      if (freeRuns + running < perMinute) return undefined;
      const allowed = Math.max(perMinute, countEarned(request));
      if (freeRuns + running < allowed) return undefined;
      if (freeRuns < allowed) return { retryAfterSeconds: 1, isRunning: true };
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
      runs.push({ at: now(), balanceKey: balanceKeyOf(id), value });
      if (runs.length > maxPaidRuns) runs.shift();
      paid.set(id.payer, runs);
    },
  };
}

function balanceKeyOf({ network, asset }: AuthorizationId): string {
  return `${network}/${asset}`;
}
