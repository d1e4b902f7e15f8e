import { CallerLimitedError, FacilitatorError, type Payment } from "@coinslot/protocol";

/** Bounds the chain calls that signatures cost which no key of their payer has made. */
export interface SignatureBudget {
  /**
   * Counts a payment against its caller, before the first chain call for it. No effect for a
   * payment that has been counted.
   *
   * @throws CallerLimitedError with the time of the next attempt, where its caller's budget is
   * empty
   * @throws FacilitatorError with the same, where that of all callers is
   */
  charge(payment: Payment, limitKey: string | undefined): void;
  /** Takes the count back, once the chain has taken the signature for the payer's. */
  refund(payment: Payment): void;
  /** Remembers the payer of a settled payment. No effect unless its count was taken back. */
  prove(payment: Payment): void;
}

/** Payments a minute; those whose signature proves good do not count. */
export interface SignatureLimits {
  /** Of one caller. */
  perCaller: number;
  /**
   * Of one payer through one caller, if a payment of the payer was settled through that caller
   * within the hour. Forgeries through the same caller do not shut it out.
   */
  perProvenPayer: number;
  /** Of all callers together; and as many of all proven payers together. */
  total: number;
}

const usualLimits: SignatureLimits = { perCaller: 30, perProvenPayer: 30, total: 1_200 };

const minuteMs = 60_000;
const provenMs = 60 * minuteMs;
const maxProven = 10_000;

/** A payment's count, for taking it back. */
interface Charge {
  counts: Map<string, number>;
  names: readonly string[];
  pair: string | undefined;
}

const all = "all";
const allProven = "all proven";

/**
 * Creates a budget. A payment counts from its start, so that a burst is bounded as well. It counts
 * against its caller alone: the payer that a forged payment names has no part in it. A payment
 * whose caller leaves before its trial stays counted: whether it has code was asked already. A
 * settled payment proves its payer. A valid verdict does not: its money may be moved on to the next
 * wallet.
 */
export function createSignatureBudget(options: {
  limits?: SignatureLimits | undefined;
  /** Unix milliseconds. */
  now: () => number;
}): SignatureBudget {
  const { limits = usualLimits, now } = options;
  const { perCaller, perProvenPayer, total } = limits;
  const charges = new WeakMap<Payment, Charge>();
  /** Payer and caller of each payment whose count was taken back. */
  const good = new WeakMap<Payment, string>();
  /** Payers by caller, with the time until which they count as proven; the oldest first. */
  const proven = new Map<string, number>();
  let minute = 0;
  let counts = new Map<string, number>();

  function add(names: readonly string[], change: 1 | -1, to: Map<string, number>): void {
    for (const name of names) to.set(name, (to.get(name) ?? 0) + change);
  }

  function hasRoom(name: string, most: number): boolean {
    return (counts.get(name) ?? 0) < most;
  }

  /**
   * Keys under which a payment is counted, or the limit that is reached. Where both are, it is that
   * of all: honest callers are shut out, too.
   */
  function findRoom(
    caller: string | undefined,
    pair: string | undefined,
  ): string[] | "caller" | "total" {
    const isProven = pair !== undefined && now() < (proven.get(pair) ?? 0);
    if (isProven && hasRoom(pair, perProvenPayer) && hasRoom(allProven, total)) {
      return [allProven, pair];
    }
    if (!hasRoom(all, total)) return "total";
    if (caller === undefined) return [all];
    return hasRoom(caller, perCaller) ? [all, caller] : "caller";
  }

  return {
    charge(payment, limitKey) {
      if (charges.has(payment)) return;
      const current = Math.floor(now() / minuteMs);
      if (current !== minute) {
        minute = current;
        counts = new Map();
      }
      const { network, payer } = payment.id;
      const caller = limitKey === undefined ? undefined : `caller ${limitKey}`;
      const pair = limitKey === undefined ? undefined : `payer ${network} ${payer} ${limitKey}`;
      const names = findRoom(caller, pair);
      if (typeof names === "string") {
        throw tooManySignatures(names, (current + 1) * minuteMs - now());
      }
      add(names, 1, counts);
      charges.set(payment, { counts, names, pair });
    },

    refund(payment) {
      const charge = charges.get(payment);
      if (charge === undefined) return;
      charges.delete(payment);
      add(charge.names, -1, charge.counts);
      if (charge.pair !== undefined) good.set(payment, charge.pair);
    },

    prove(payment) {
      const pair = good.get(payment);
      if (pair === undefined) return;
      proven.delete(pair);
      const [oldest] = proven.size >= maxProven ? proven.keys() : [];
      if (oldest !== undefined) proven.delete(oldest);
      proven.set(pair, now() + provenMs);
    },
  };
}

function tooManySignatures(limit: "caller" | "total", waitMs: number): FacilitatorError {
  const retryAfterSeconds = Math.ceil(waitMs / 1000);
  return limit === "caller"
    ? new CallerLimitedError(
        "Too many payments of this caller had a signature that is not the payer's; try again later",
        { retryAfterSeconds },
      )
    : new FacilitatorError(
        "Too many payments had a signature that is not the payer's; try again later",
        { kind: "unavailable", retryAfterSeconds },
      );
}
