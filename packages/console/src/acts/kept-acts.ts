import { createHash } from "node:crypto";
import { RefusedError, refusals } from "../api/refusal.ts";

/** Answers of acts, by their idempotency keys. */
export interface KeptActs {
  /**
   * Runs an act, or returns the answer of the same act before. Simultaneous repetitions share one
   * run. An act that failed is not kept: its repetition asks the ledger again.
   *
   * @throws RefusedError where the key was used for another act
   */
  run<Result>(
    act: Act,
    work: () => Promise<Result>,
  ): Promise<{ result: Result; isReplay: boolean }>;
}

/** An act, and the key that names it. */
export interface Act {
  operation: string;
  argument: unknown;
  key: string;
}

const maxKept = 1_000;

/** Creates the store, in the memory of the process: the ledger has refunds' keys for good. */
export function createKeptActs(): KeptActs {
  const kept = new Map<string, { fingerprint: string; answer: Promise<unknown> }>();

  return {
    async run<Result>(act: Act, work: () => Promise<Result>) {
      const fingerprint = fingerprintOf(act);
      const found = kept.get(act.key);
      if (found !== undefined) {
        if (found.fingerprint !== fingerprint) throw new RefusedError(refusals.keyReused);
        // Of the same operation and argument: its answer has the same type.
        return { result: (await found.answer) as Result, isReplay: true };
      }
      const answer = work();
      const entry = { fingerprint, answer };
      kept.set(act.key, entry);
      const [oldest] = kept.keys();
      if (kept.size > maxKept && oldest !== undefined) kept.delete(oldest);
      try {
        return { result: await answer, isReplay: false };
      } catch (error) {
        if (kept.get(act.key) === entry) kept.delete(act.key);
        throw error;
      }
    },
  };
}

/** Identity of an act: its operation and its argument. */
export function fingerprintOf({ operation, argument }: Omit<Act, "key">): string {
  return createHash("sha256")
    .update(JSON.stringify([operation, argument]))
    .digest("hex");
}
