import { FacilitatorError, type Payment } from "@coinslot/protocol";

/** Bounds the fruitless verifications that callers cause at a facilitator elsewhere. */
export interface VerificationBudget {
  /**
   * Admits a payment to a verification. A signature that is not of the payer's key counts from
   * here, so that a burst is bounded as well. One of its key counts once it is refused.
   *
   * @returns records the verdict; without one, because the facilitator failed, nothing is counted.
   * @throws FacilitatorError with the time of the next attempt, where the budget is empty.
   */
  admit(
    payment: Pick<Payment, "id">,
    options: { limitKey: string | undefined; isSignedByPayer: boolean },
  ): (verdict: "valid" | "refused" | "none") => void;
}

/**
 * Refused verifications a minute: of one caller, of one proven payer through it, of all callers.
 * Forged signatures and those of the payer's key have separate limits.
 */
const limits = { perCaller: 30, perProvenPayer: 30, total: 1_200 };
const minuteMs = 60_000;
/** Time for which a payer counts as proven, from its last valid payment through the same caller. */
const provenMs = 60 * minuteMs;
const maxProven = 10_000;

/**
 * Creates a budget. A wallet costs nothing to make, so a good signature earns no more refused calls
 * than a forged one. Both count against their caller alone: a forged payment never counts against
 * the payer that it names. A payer that has paid through the caller has a budget of its own.
 */
export function createVerificationBudget({ now }: { now: () => number }): VerificationBudget {
  /** Payers by caller, with the time until which they count as proven; the oldest first. */
  const proven = new Map<string, number>();
  let minute = 0;
  let counts = new Map<string, number>();

  function turnMinute(): void {
    const current = Math.floor(now() / minuteMs);
    if (current === minute) return;
    minute = current;
    counts = new Map();
  }

  function hasRoom(name: string, limit: number): boolean {
    return (counts.get(name) ?? 0) < limit;
  }

  /** The counters of the payment; `undefined` where one of them is full. */
  function findCounters(
    pair: string,
    { limitKey, isSignedByPayer }: { limitKey: string | undefined; isSignedByPayer: boolean },
  ): readonly string[] | undefined {
    const isProven = now() < (proven.get(pair) ?? 0);
    if (isProven && hasRoom(pair, limits.perProvenPayer)) return [pair];
    const all = isSignedByPayer ? "signed" : "forged";
    if (!hasRoom(all, limits.total)) return undefined;
    if (limitKey === undefined) return [all];
    const caller = `${all} ${limitKey}`;
    return hasRoom(caller, limits.perCaller) ? [all, caller] : undefined;
  }

  function remember(pair: string): void {
    proven.delete(pair);
    const [oldest] = proven.size >= maxProven ? proven.keys() : [];
    if (oldest !== undefined) proven.delete(oldest);
    proven.set(pair, now() + provenMs);
  }

  return {
    admit({ id }, options) {
      turnMinute();
      const { limitKey, isSignedByPayer } = options;
      // A payer proves itself by its key or by its code, for payments of that kind alone.
      const kind = isSignedByPayer ? "signed" : "forged";
      const pair = `${kind} payer ${id.network} ${id.payer} ${limitKey}`;
      const names = findCounters(pair, options);
      if (names === undefined) throw tooManyRefused((minute + 1) * minuteMs - now());
      const counted = counts;
      const count = (change: number) => {
        for (const name of names) counted.set(name, (counted.get(name) ?? 0) + change);
      };
      const isCounted = !isSignedByPayer;
      if (isCounted) count(1);
      return (verdict) => {
        if (verdict === "valid") remember(pair);
        const isToCount = verdict === "refused";
        if (isToCount !== isCounted) count(isToCount ? 1 : -1);
      };
    },
  };
}

function tooManyRefused(waitMs: number): FacilitatorError {
  return new FacilitatorError("Too many payments of this caller were refused; try again later", {
    kind: "unavailable",
    retryAfterSeconds: Math.ceil(waitMs / 1000),
  });
}
