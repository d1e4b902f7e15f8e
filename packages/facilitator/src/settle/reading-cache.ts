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
  /** What is known of a payment that no transaction carries yet. */
  recall(id: AuthorizationId): CallFacts | undefined;
  /** Whether the payment has been simulated so recently that it need not be tried again. */
  isFresh(id: AuthorizationId): boolean;
  /** For a payment that a transaction carries: if it comes back, it has to be tried again. */
  forget(id: AuthorizationId): void;
  /** What a payment takes of a batch, as far as seen lately. */
  typicalGas(): bigint;
}

const mostEntries = 20_000;

/**
 * Remembers simulations, so that a payment which was verified a moment ago is not tried once more
 * when its transaction is planned. Milliseconds: for `freshMs` it need not be tried again, for
 * `keepMs` a handler may work until its payment is queued. What is forgotten is tried again.
 */
export function createReadingCache(options: {
  freshMs: number;
  keepMs: number;
  now: () => number;
}): ReadingCache {
  const { freshMs, keepMs, now } = options;
  let lastGas: bigint | undefined;
  const entries = new Map<string, CallFacts & { at: number }>();

  /** The order of insertion is that of age. */
  function dropOldest(): void {
    for (const [key, { at }] of entries) {
      if (entries.size <= mostEntries && now() - at < keepMs) return;
      entries.delete(key);
    }
  }

  return {
    remember(id, { payerHasCode, gasUsed }) {
      const key = authorizationKey(id);
      lastGas = gasUsed ?? lastGas;
      entries.delete(key);
      entries.set(key, { payerHasCode, gasUsed, at: now() });
      dropOldest();
    },
    recall: (id) => entries.get(authorizationKey(id)),
    isFresh(id) {
      const entry = entries.get(authorizationKey(id));
      return entry !== undefined && now() - entry.at < freshMs;
    },
    forget(id) {
      entries.delete(authorizationKey(id));
    },
    typicalGas: () => gasOfCall(lastGas),
  };
}
