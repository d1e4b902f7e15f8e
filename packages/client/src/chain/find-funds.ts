import { type Address, symbolOf } from "@coinslot/protocol";
import type { SpendableAsset } from "../budget/spending-policy.ts";
import { type Candidate, refuse } from "../offer/choose-requirements.ts";
import type { Refusal } from "../offer/offer-refused-error.ts";
import type { ChainReader } from "./chain-reader.ts";

/** The missing funds for one entry of an offer. */
export interface Shortfall {
  candidate: Candidate;
  /** In the token's smallest unit; less than the amount of the entry. */
  balance: bigint;
}

/** The funds that candidates need. */
export interface FoundFunds {
  /** Candidates for which the payer has the funds, in the same order. */
  funded: Candidate[];
  shortfalls: Shortfall[];
  refusals: Refusal[];
}

interface FundsQuestion {
  candidates: readonly Candidate[];
  payer: Address;
  chains: ChainReader;
  /** Part of a balance that other payments may still take. Default: none. */
  promised?: ((asset: SpendableAsset) => bigint) | undefined;
}

/** Maximum number of polls, and the pause between two, for funds reported as arrived. */
const maxPolls = 20;
const pollIntervalMs = 500;

/** Reads the funds for the candidates. All balances are read at the same time. */
export async function findFunds(options: FundsQuestion): Promise<FoundFunds> {
  const { candidates, payer, chains, promised = () => 0n } = options;
  const assets = [...new Set(candidates.map(({ asset }) => asset))];
  const free = new Map<SpendableAsset, { balance: bigint | undefined; taken: bigint }>(
    await Promise.all(
      assets.map(async (asset) => {
        const { network, address } = asset;
        // A payment that ends during the read may be in the balance or not: it is read again.
        for (let before = promised(asset); ; ) {
          const balance = await chains.readBalance({ network, asset: address, owner: payer });
          const taken = promised(asset);
          if (taken === before) return [asset, { balance, taken }] as const;
          before = taken;
        }
      }),
    ),
  );

  const funded: Candidate[] = [];
  const shortfalls: Shortfall[] = [];
  const refusals: Refusal[] = [];
  for (const candidate of candidates) {
    const { asset, amount } = candidate;
    const { balance, taken = 0n } = free.get(asset) ?? {};
    if (balance === undefined) {
      const message = `The balance of ${symbolOf(asset)} on ${asset.network} could not be read`;
      refusals.push(refuse(candidate, "balance_unreadable", message));
    } else if (balance - taken < amount) {
      const message = `The payer has too little ${symbolOf(asset)} on ${asset.network}`;
      refusals.push(refuse(candidate, "insufficient_funds", message));
      shortfalls.push({ candidate, balance });
    } else funded.push(candidate);
  }
  return { funded, shortfalls, refusals };
}

/**
 * Polls for funds that the top-up reported as arrived. It saw them at another endpoint, so the
 * endpoints here may be some blocks behind.
 *
 * @throws the signal's reason when the caller aborts meanwhile
 */
export async function findBroughtFunds(
  question: FundsQuestion,
  {
    wait,
    signal,
  }: {
    wait: (ms: number, signal?: AbortSignal) => Promise<void>;
    signal: AbortSignal | undefined;
  },
): Promise<FoundFunds> {
  for (let count = 1; ; count += 1) {
    const found = await findFunds(question);
    if (found.funded.length > 0 || count === maxPolls) return found;
    try {
      await wait(pollIntervalMs, signal);
    } finally {
      signal?.throwIfAborted();
    }
  }
}
