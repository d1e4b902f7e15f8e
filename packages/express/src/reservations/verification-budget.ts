import {
  type AuthorizationId,
  authorizationKey,
  CallerGoneError,
  CallerLimitedError,
  FacilitatorError,
  type Payment,
  type VerifyOptions,
} from "@coinslot/protocol";
import { createTurns } from "./turns.ts";

/** The caller of a verification, and the kind of its signature. */
interface Signed {
  limitKey: string | undefined;
  isSignedByPayer: boolean;
}

/** A verification that asks for its admission. */
interface Asking extends Signed {
  wait?: VerifyOptions["wait"];
}

/** Ends a verification. It gives no verdict where the facilitator fails. */
type RecordVerdict = (verdict: "good" | "refused" | undefined) => void;

/** Bounds the fruitless verifications that callers cause at a facilitator elsewhere. */
export interface VerificationBudget {
  /**
   * Admits a payment to a verification. It counts while it runs, which bounds bursts as well, and
   * for the minute once it is refused. A payment of the payer's key waits while others run, if it
   * may; any other signature does not.
   *
   * @throws CallerGoneError where the caller has left while the payment waited.
   * @throws FacilitatorError with the time of the next attempt, where the budget is empty.
   */
  admit(payment: Pick<Payment, "id">, asking: Asking): Promise<RecordVerdict>;
  /** Decides a payment that was found good: its handler begins, or its request ends without one. */
  decide(id: AuthorizationId, use: { isUnused: boolean }): void;
  /** Forgets a payment whose handler has run. */
  forget(id: AuthorizationId): void;
  /** Remembers a payer whose payment was settled, for payments signed in the same way. */
  prove(payment: Pick<Payment, "id">, signed: Signed): void;
}

/** Verifications of one name in this minute. */
interface Counter {
  name: string;
  running: number;
  refused: number;
  /** Found good, and not decided yet. */
  undecided: number;
  /** Found good, and no handler has run. */
  unused: number;
}

/** A payment that was found good, once for each of its undecided requests. */
interface GoodPayment {
  undecided: number;
  counters: readonly Counter[];
  /** A request that is verified before its body is read, and after, counts once. */
  requests: WeakSet<Pick<Payment, "id">>;
}

/**
 * Running and refused verifications a minute: of one caller, of one proven payer through it, of all
 * callers. All proven payers together have another total of the same size. Forged signatures and
 * those of the payer's key have separate limits.
 */
const limits = { perCaller: 30, perProvenPayer: 30, total: 1_200 };
/**
 * For each of these, the good payments a minute without a handler run. The buyer leaves, or the
 * payer has had its free runs. They cost the same call, and no money.
 */
const unusedPerRefused = 10;
const minuteMs = 60_000;
/** Time for which a payer counts as proven, from its last payment settled through a caller. */
const provenMs = 60 * minuteMs;
const maxProven = 10_000;

/**
 * Creates a budget. A wallet costs nothing to make, so a good signature earns no more refused calls
 * than a forged one. Both count against their caller alone: a forged payment never counts against
 * the payer that it names. A payer that has paid through the caller has a budget of its own. A
 * valid verification earns none: the money that it shows may be moved on to the next wallet. Nor is
 * it free: it counts, with a limit of its own, unless the handler runs for it.
 */
export function createVerificationBudget({ now }: { now: () => number }): VerificationBudget {
  /** Payers by caller, with the time until which they count as proven; the oldest first. */
  const proven = new Map<string, number>();
  const turns = createTurns();
  const tally = createTally(now);

  /** Begins as a proven payer, if it is one and has room of its own. */
  function attemptOwn(payment: Pick<Payment, "id">, signed: Signed): RecordVerdict | undefined {
    const own = ownCountersOf(payment, signed);
    return own?.mayJoin(isOpen) ? tally.begin(payment, own.counters) : undefined;
  }

  /**
   * The counters of a proven payer: of all such payers, and its own. A payer proves itself for
   * payments of the same kind alone.
   */
  function ownCountersOf({ id }: Pick<Payment, "id">, signed: Signed) {
    const pair = pairOf(id, signed);
    if (now() >= (proven.get(pair) ?? 0)) return undefined;
    const all = tally.counterOf(`proven ${kindOf(signed)}`);
    const own = tally.counterOf(pair);
    return {
      counters: [all, own],
      mayJoin: (isFree: typeof isOpen) =>
        isFree(all, limits.total) && isFree(own, limits.perProvenPayer),
    };
  }

  /** @returns `"busy"`: there is room once those that run have come out valid. */
  function attemptShared(payment: Pick<Payment, "id">, signed: Signed): RecordVerdict | "busy" {
    const { limitKey, isSignedByPayer } = signed;
    const kind = kindOf(signed);
    const all = tally.counterOf(kind);
    const caller = limitKey === undefined ? undefined : tally.counterOf(`${kind} ${limitKey}`);
    const mayJoin = (isFree: typeof isOpen) =>
      isFree(all, limits.total) && (caller === undefined || isFree(caller, limits.perCaller));
    if (mayJoin(isOpen)) return tally.begin(payment, caller === undefined ? [all] : [all, caller]);
    const opensAgain = mayJoin(isUnspent) || ownCountersOf(payment, signed)?.mayJoin(isUnspent);
    if (isSignedByPayer && opensAgain) return "busy";
    const limit = isOpen(all, limits.total) ? "caller" : "total";
    throw tooManyFruitless(limit, tally.remainingMs());
  }

  function attempt(payment: Pick<Payment, "id">, signed: Signed): RecordVerdict | "busy" {
    tally.turnMinute();
    return attemptOwn(payment, signed) ?? attemptShared(payment, signed);
  }

  /** No attempt comes before the turn: a newcomer would overtake those that wait. */
  function takeTurn(payment: Pick<Payment, "id">, asking: Asking) {
    const { limitKey = "", wait } = asking;
    return turns.take<RecordVerdict | "busy">({
      key: limitKey,
      attempt: async () => attempt(payment, asking),
      mustWait: (result) => result === "busy",
      mayWait: () => wait?.mayWait() !== false,
      isGone: () => wait?.isGone() === true,
    });
  }

  return {
    async admit(payment, asking) {
      tally.turnMinute();
      const own = attemptOwn(payment, asking);
      if (own !== undefined) return own;
      const admitted = asking.isSignedByPayer
        ? await takeTurn(payment, asking)
        : attemptShared(payment, asking);
      if (admitted === "gone") throw new CallerGoneError();
      if (admitted === "busy" || admitted === "no_place") throw tooManyRunning();
      return admitted;
    },
    decide: tally.decide,
    forget: tally.forget,
    prove({ id }, signed) {
      const pair = pairOf(id, signed);
      proven.delete(pair);
      const [oldest] = proven.size >= maxProven ? proven.keys() : [];
      if (oldest !== undefined) proven.delete(oldest);
      proven.set(pair, now() + provenMs);
    },
  };
}

/** Counts the verifications of this minute. Those that run count on when it ends. */
function createTally(now: () => number) {
  const counters = new Map<string, Counter>();
  /** By `authorizationKey`; those of this minute. */
  let good = new Map<string, GoodPayment>();
  let minute = 0;

  function turnMinute(): void {
    const current = Math.floor(now() / minuteMs);
    if (current === minute) return;
    minute = current;
    good = new Map();
    for (const counter of counters.values()) {
      if (counter.running === 0) counters.delete(counter.name);
      counter.refused = 0;
      counter.undecided = 0;
      counter.unused = 0;
    }
  }

  function addGood(payment: Pick<Payment, "id">, counters: readonly Counter[]): void {
    const key = authorizationKey(payment.id);
    const before = good.get(key);
    // A payment that another caller has brought stays counted against that one.
    const isSameCaller = before?.counters.at(-1) === counters.at(-1);
    const found =
      isSameCaller && before ? before : { undecided: 0, counters, requests: new WeakSet() };
    if (found.requests.has(payment)) return;
    found.requests.add(payment);
    found.undecided += 1;
    for (const counter of counters) counter.undecided += 1;
    good.set(key, found);
  }

  return {
    turnMinute,
    /** Time until the minute ends. */
    remainingMs: () => (minute + 1) * minuteMs - now(),
    /** A new counter is kept once a verification begins: a refused caller costs no memory. */
    counterOf: (name: string): Counter =>
      counters.get(name) ?? { name, running: 0, refused: 0, undecided: 0, unused: 0 },
    /** Counts a verification as running in each of these, until its verdict. */
    begin(payment: Pick<Payment, "id">, counted: readonly Counter[]): RecordVerdict {
      for (const counter of counted) {
        counter.running += 1;
        counters.set(counter.name, counter);
      }
      return (verdict) => {
        for (const counter of counted) {
          counter.running -= 1;
          if (verdict === "refused") counter.refused += 1;
        }
        if (verdict === "good") addGood(payment, counted);
      };
    },
    decide(id: AuthorizationId, { isUnused }: { isUnused: boolean }): void {
      turnMinute();
      const found = good.get(authorizationKey(id));
      if (found === undefined) return;
      for (const counter of found.counters) {
        if (found.undecided > 0) counter.undecided -= 1;
        if (isUnused) counter.unused += 1;
      }
      if (found.undecided > 0) found.undecided -= 1;
    },
    forget(id: AuthorizationId): void {
      const key = authorizationKey(id);
      if (good.get(key)?.undecided === 0) good.delete(key);
    },
  };
}

function isOpen({ running, refused, undecided, unused }: Counter, limit: number): boolean {
  return running + refused < limit && undecided + unused < limit * unusedPerRefused;
}

function isUnspent({ refused, unused }: Counter, limit: number): boolean {
  return refused < limit && unused < limit * unusedPerRefused;
}

function kindOf({ isSignedByPayer }: Signed): "signed" | "forged" {
  return isSignedByPayer ? "signed" : "forged";
}

function pairOf(id: Payment["id"], signed: Signed): string {
  return `${kindOf(signed)} payer ${id.network} ${id.payer} ${signed.limitKey}`;
}

function tooManyFruitless(limit: "caller" | "total", waitMs: number): FacilitatorError {
  const retryAfterSeconds = Math.ceil(waitMs / 1000);
  return limit === "caller"
    ? new CallerLimitedError("Too many payments of this caller ran no handler; try again later", {
        retryAfterSeconds,
      })
    : new FacilitatorError("Too many payments ran no handler; try again later", {
        kind: "unavailable",
        retryAfterSeconds,
      });
}

function tooManyRunning(): FacilitatorError {
  return new FacilitatorError("Too many payments of this caller are being verified", {
    kind: "unavailable",
    retryAfterSeconds: 1,
  });
}
