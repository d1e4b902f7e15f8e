import { createHash } from "node:crypto";
import { type AuthorizationId, authorizationKey, type Network } from "@coinslot/protocol";
import { schemeOf } from "../schemes/registry.ts";
import type { Claim } from "../schemes/scheme.ts";
import { gasAtRisk, gasOfCall } from "../settle/relay/gas.ts";
import { simulationKey } from "./simulation-key.ts";

/** The part of a simulation's result that matters for a payment's transaction. */
export interface CallFacts {
  payerHasCode: boolean;
  /** Of the token call by itself; `undefined` where the node shows none. */
  gasUsed: bigint | undefined;
}

/**
 * A fresh simulation, for the other processes of the ledger: of a payer without code, and with its
 * gas.
 */
export interface SharedSimulation {
  /** Of the whole authorization and its signature. */
  digest: string;
  gasUsed: bigint;
  /** When it was made, by the clock of the process that reads this. */
  at: number;
}

/**
 * Recent simulations, by the whole authorization and its signature. One nonce may be signed for
 * many things, and a fact about one of them proves nothing about another.
 */
export interface SimulationCache {
  remember(transfer: Claim, facts: CallFacts): void;
  /** The facts about a transfer simulated so recently that it need not be tried again. */
  recall(transfer: Claim): CallFacts | undefined;
  /** A fresh simulation of this transfer, for the process that is to settle it. */
  share(transfer: Claim): SharedSimulation | undefined;
  /** Takes over what another process of this ledger has simulated. */
  learn(network: Network, simulation: SharedSimulation): void;
  /** For a payment that a transaction carries, or that was refused: it has to be tried again. */
  forget(transfer: Claim): void;
  /**
   * Gas that a transaction for this authorization may burn, where any simulation of it has seen
   * code at its payer. `undefined` where none has. It only ever errs against a payer that has had
   * code.
   */
  gasAtRisk(id: AuthorizationId): bigint | undefined;
  /** A payment's share of a batch, as seen lately. */
  typicalGas(): bigint;
}

const maxEntries = 20_000;

/**
 * Remembers simulations: a payment that was verified a moment ago is not tried once more when its
 * transaction is planned. Milliseconds. For `freshMs` it need not be tried again, for `keepMs` the
 * gas at risk by a payer's code is known. A forgotten payment is tried again.
 */
export function createSimulationCache(options: {
  freshMs: number;
  keepMs: number;
  /** Gas that one token call may use. */
  callGasOf: (network: Network) => bigint;
  now: () => number;
}): SimulationCache {
  const { freshMs, keepMs, callGasOf, now } = options;
  let lastGas: bigint | undefined;
  const entries = new Map<string, CallFacts & { at: number }>();
  const atRisk = new Map<string, { gas: bigint; at: number }>();
  /** Simulations of other processes, by their digests. */
  const learnt = new Map<string, CallFacts & { at: number }>();

  /** Adds an entry, and drops those that are older than `maxAgeMs`. */
  function put<Entry extends { at: number }>(
    map: Map<string, Entry>,
    { key, entry, maxAgeMs }: { key: string; entry: Entry; maxAgeMs: number },
  ): void {
    map.delete(key);
    map.set(key, entry);
    // Insertion order is age order.
    for (const [oldest, { at }] of map) {
      if (map.size <= maxEntries && now() - at < maxAgeMs) return;
      map.delete(oldest);
    }
  }

  /**
   * No call was granted more. A node that returns more would only spoil a transaction's gas limit.
   */
  function capGas<Gas extends bigint | undefined>(network: Network, gas: Gas): Gas | bigint {
    const callGas = callGasOf(network);
    return gas !== undefined && gas > callGas ? callGas : gas;
  }

  function isFresh(entry: { at: number } | undefined): boolean {
    return entry !== undefined && now() - entry.at < freshMs;
  }

  return {
    remember(transfer, { payerHasCode, gasUsed: reported }) {
      const callGas = callGasOf(transfer.id.network);
      const gasUsed = capGas(transfer.id.network, reported);
      lastGas = gasUsed ?? lastGas;
      const at = now();
      const entry = { payerHasCode, gasUsed, at };
      put(entries, { key: simulationKey(transfer), entry, maxAgeMs: freshMs });
      if (!payerHasCode) return;
      const gas = gasAtRisk(schemeOf(transfer).maxCallBytes(transfer), callGas);
      const key = authorizationKey(transfer.id);
      put(atRisk, { key, entry: { gas, at }, maxAgeMs: keepMs });
    },
    recall(transfer) {
      const key = simulationKey(transfer);
      const own = entries.get(key);
      if (isFresh(own)) return own;
      const other = learnt.size === 0 ? undefined : learnt.get(digestOf(key));
      return isFresh(other) ? other : undefined;
    },
    share(transfer) {
      const key = simulationKey(transfer);
      const entry = entries.get(key);
      if (!isFresh(entry) || entry?.gasUsed === undefined || entry.payerHasCode) return undefined;
      return { digest: digestOf(key), gasUsed: entry.gasUsed, at: entry.at };
    },
    learn(network, { digest, gasUsed: reported, at }) {
      const gasUsed = capGas(network, reported);
      lastGas = gasUsed;
      const entry = { payerHasCode: false, gasUsed, at };
      put(learnt, { key: digest, entry, maxAgeMs: freshMs });
    },
    forget(transfer) {
      const key = simulationKey(transfer);
      entries.delete(key);
      if (learnt.size > 0) learnt.delete(digestOf(key));
    },
    gasAtRisk: (id) => (atRisk.size === 0 ? undefined : atRisk.get(authorizationKey(id))?.gas),
    typicalGas: () => gasOfCall(lastGas),
  };
}

function digestOf(key: string): string {
  return createHash("sha256").update(key).digest("base64url").slice(0, 22);
}
