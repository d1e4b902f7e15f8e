import { type AuthorizationId, authorizationKey } from "@coinslot/protocol";
import { gasOfCall } from "./gas.ts";

/** What a simulation has told of a payment that matters for its transaction. */
export interface CallFacts {
  payerHasCode: boolean;
  /** Of the token call by itself; `undefined` where the node shows none. */
  gasUsed: bigint | undefined;
}

/** What is known of payments from simulations made a moment ago. */
export interface ReadingCache {
  remember(id: AuthorizationId, facts: CallFacts): void;
  /** What is known, whatever its age. */
  recall(id: AuthorizationId): CallFacts | undefined;
  /** Whether the payment has been simulated so recently that it need not be tried again. */
  isFresh(id: AuthorizationId): boolean;
  /** What a payment takes of a batch, as far as seen lately. */
  typicalGas(): bigint;
}

const mostEntries = 20_000;

/**
 * Remembers simulations, so that a payment which was verified a moment ago is not tried once more
 * when its transaction is planned. `now` in milliseconds.
 */
export function createReadingCache(options: { freshMs: number; now: () => number }): ReadingCache {
  const { freshMs, now } = options;
  let lastGas: bigint | undefined;
  const entries = new Map<string, CallFacts & { at: number }>();
  return {
    remember(id, facts) {
      const key = authorizationKey(id);
      lastGas = facts.gasUsed ?? lastGas;
      entries.delete(key);
      entries.set(key, { ...facts, at: now() });
      // The order of insertion is that of age.
      for (const oldest of entries.keys()) {
        if (entries.size <= mostEntries) break;
        entries.delete(oldest);
      }
    },
    recall: (id) => entries.get(authorizationKey(id)),
    isFresh(id) {
      const entry = entries.get(authorizationKey(id));
      return entry !== undefined && now() - entry.at < freshMs;
    },
    typicalGas: () => gasOfCall(lastGas),
  };
}
