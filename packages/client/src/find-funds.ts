import type { Address } from "@coinslot/protocol";
import type { ChainReader } from "./chain-reader.ts";
import { type Candidate, refuse } from "./choose-requirements.ts";
import type { Refusal } from "./offer-refused-error.ts";
import type { SpendableAsset } from "./spending-policy.ts";

/** What the payer lacks for one entry of an offer. */
export interface Shortfall {
  candidate: Candidate;
  /** In the token's smallest unit; less than the amount of the entry. */
  balance: bigint;
}

/**
 * Of candidates, those for which the payer has the funds, in the same order. All balances are read
 * at the same time, each once.
 */
export async function findFunds(options: {
  candidates: readonly Candidate[];
  payer: Address;
  chains: ChainReader;
}): Promise<{ funded: Candidate[]; shortfalls: Shortfall[]; refusals: Refusal[] }> {
  const { candidates, payer, chains } = options;
  const assets = [...new Set(candidates.map(({ asset }) => asset))];
  const balances = new Map<SpendableAsset, bigint | undefined>(
    await Promise.all(
      assets.map(async (asset) => {
        const { network, address } = asset;
        const balance = await chains.readBalance({ network, asset: address, owner: payer });
        return [asset, balance] as const;
      }),
    ),
  );

  const funded: Candidate[] = [];
  const shortfalls: Shortfall[] = [];
  const refusals: Refusal[] = [];
  for (const candidate of candidates) {
    const { asset, amount } = candidate;
    const balance = balances.get(asset);
    if (balance === undefined) {
      const message = `The balance of ${asset.name} on ${asset.network} could not be read`;
      refusals.push(refuse(candidate, "balance_unreadable", message));
    } else if (balance < amount) {
      const message = `The payer has too little ${asset.name} on ${asset.network}`;
      refusals.push(refuse(candidate, "insufficient_funds", message));
      shortfalls.push({ candidate, balance });
    } else funded.push(candidate);
  }
  return { funded, shortfalls, refusals };
}
