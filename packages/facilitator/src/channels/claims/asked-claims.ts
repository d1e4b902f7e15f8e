import type { Hex } from "@coinslot/protocol";
import type { ClaimPlan } from "./plan-claims.ts";

/** A claim that was asked for: of all channels, or of one. */
export interface AskedClaim {
  only: Hex | undefined;
}

/** Claims that were asked for, and wait for the next round. */
export interface AskedClaims {
  /** Resolves with the plan of the next round; rejects where that fails. */
  ask(asked: AskedClaim): Promise<ClaimPlan>;
  /** Answers all that wait, one after the other. */
  answer(plan: (asked: AskedClaim) => Promise<ClaimPlan>): Promise<void>;
  fail(reason: unknown): void;
  /** Fails all, also later ones. */
  end(reason: unknown): void;
}

/** @param wake begins a round */
export function createAskedClaims(wake: () => void): AskedClaims {
  let ended: unknown;
  const waiting: {
    asked: AskedClaim;
    resolve: (plan: ClaimPlan) => void;
    reject: (reason: unknown) => void;
  }[] = [];
  function fail(reason: unknown): void {
    for (const { reject } of waiting.splice(0)) reject(reason);
  }

  return {
    ask: (asked) =>
      new Promise((resolve, reject) => {
        if (ended !== undefined) return reject(ended);
        waiting.push({ asked, resolve, reject });
        wake();
      }),
    async answer(plan) {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        await plan(next.asked).then(next.resolve, next.reject);
      }
    },
    fail,
    end(reason) {
      ended = reason;
      fail(reason);
    },
  };
}
