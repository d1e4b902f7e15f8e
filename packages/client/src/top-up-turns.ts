import { AsyncLocalStorage } from "node:async_hooks";
import { createKeyedMutex } from "@coinslot/concurrency";
import type { SpendableAsset } from "./budget/spending-policy.ts";
import type { Candidate } from "./offer/choose-requirements.ts";
import { untilAborted } from "./sign/book-and-sign.ts";

/** The turn of one call to top up for a host. The call holds it until it pays, or ends. */
export interface TopUpTurn {
  /** True if balances have to be read anew: this call waited, or earlier ones still pay. */
  readonly isLater: boolean;
  /** Set by a top-up that failed after this call began. */
  readonly declined: { error: unknown } | undefined;
  /** Sum that the purchases under way of earlier calls may still take. */
  promised(asset: SpendableAsset): bigint;
  /**
   * Waits until the purchases of earlier calls have ended.
   *
   * @returns false if there is none
   */
  awaitOthers(): Promise<boolean>;
  /** Notes a failed top-up, for calls that have begun. The error is `undefined` for a refusal. */
  decline(error: unknown): void;
  /** Passes the turn on. The purchase of one of these goes on beside other calls. */
  leave(candidates: readonly Candidate[]): void;
  /** Ends the purchase, as one without this turn takes its place. */
  end(): void;
}

/**
 * Turns of the calls of one host name that need a top-up. Top-ups are one after the other, each
 * after the purchases of earlier calls. Purchases for which the funds are there are not.
 */
export interface TopUpTurns {
  /** Returns the number of failed top-ups: the moment at which a call begins. */
  now(): number;
  /**
   * Runs `work` in turn. A call that a callback of another call makes does not wait: each would
   * wait for the other.
   *
   * @throws the error of `refuse` where such a call had to wait; the signal's reason after an abort
   */
  run<Result>(
    wanted: { host: string; since: number; signal: AbortSignal | undefined; refuse: () => Error },
    work: (turn: TopUpTurn) => Promise<Result>,
  ): Promise<Result>;
}

/** A purchase that has left its turn, or that holds it. */
interface UnderWay {
  promised: readonly Candidate[];
  ended: Promise<void>;
}

/** A call, and the one whose callback makes it. */
interface Caller {
  isUnderWay: boolean;
  outer: Caller | undefined;
}

/** Creates turns, for the lifetime of one `createPayingFetch`. */
export function createTopUpTurns(): TopUpTurns {
  const turns = createKeyedMutex<string>();
  const underWay = new Map<string, Set<UnderWay>>();
  const declined = new Map<string, { at: number; error: unknown }>();
  const caller = new AsyncLocalStorage<Caller>();

  let failed = 0;

  return {
    now: () => failed,
    async run({ host, since, signal, refuse }, work) {
      const outer = caller.getStore();
      const isNested = isUnderWay(outer);
      const isTaken = turns.count(host) > 0;
      if (isNested && isTaken) throw refuse();
      let purchase: ReturnType<typeof work> | undefined;
      const start = async () => {
        const last = declined.get(host);
        const isDeclined = last !== undefined && last.at > since;
        let leave: () => void = () => undefined;
        const left = new Promise<void>((resolve) => {
          leave = resolve;
        });
        let finish: () => void = () => undefined;
        const ended = new Promise<void>((resolve) => {
          finish = resolve;
        });
        const state: Caller = { isUnderWay: true, outer };
        let entry: UnderWay | undefined;
        const end = () => {
          state.isUnderWay = false;
          if (entry !== undefined) exit(underWay, host, entry);
          leave();
          finish();
        };
        const turn: TopUpTurn = {
          isLater: isTaken || underWay.has(host) || isDeclined,
          declined: isDeclined ? last : undefined,
          promised: (asset) => sumOf(underWay.get(host) ?? [], asset),
          async awaitOthers() {
            const before = [...(underWay.get(host) ?? [])];
            if (before.length === 0) return false;
            if (isNested) throw refuse();
            await untilAborted(Promise.all(before.map(({ ended }) => ended)), signal);
            return true;
          },
          decline(error) {
            failed += 1;
            declined.set(host, { at: failed, error });
          },
          leave(promised) {
            entry = { promised, ended };
            enter(underWay, host, entry);
            leave();
          },
          end,
        };
        purchase = caller.run(state, () => work(turn));
        void purchase.then(end, end);
        await left;
      };
      await turns.run(host, start, signal);
      if (purchase === undefined) throw new TypeError("A turn begins its work");
      return purchase;
    },
  };
}

function isUnderWay(call: Caller | undefined): boolean {
  return call !== undefined && (call.isUnderWay || isUnderWay(call.outer));
}

function sumOf(all: Iterable<UnderWay>, asset: SpendableAsset): bigint {
  let sum = 0n;
  for (const { promised } of all) {
    // One of them is bought.
    let most = 0n;
    for (const each of promised) {
      if (each.asset === asset && each.amount > most) most = each.amount;
    }
    sum += most;
  }
  return sum;
}

function enter<Member>(sets: Map<string, Set<Member>>, host: string, member: Member): void {
  const set = sets.get(host) ?? new Set();
  sets.set(host, set.add(member));
}

function exit<Member>(sets: Map<string, Set<Member>>, host: string, member: Member): void {
  const set = sets.get(host);
  set?.delete(member);
  if (set?.size === 0) sets.delete(host);
}
