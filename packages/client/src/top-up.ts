import type { Address, Network } from "@coinslot/protocol";
import type { Shortfall } from "./chain/find-funds.ts";

/** Funds that one entry of an offer needs. Amounts are in the token's smallest unit. */
export interface TopUpNeed {
  network: Network;
  asset: Address;
  amount: bigint;
  balance: bigint;
}

/** A payment for which no offered network has the funds. */
export interface TopUpRequest {
  payer: Address;
  /** The seller's host, with its port. */
  host: string;
  /** Any one of these is enough; the best comes first. */
  needs: readonly TopUpNeed[];
  signal: AbortSignal | undefined;
}

/**
 * Brings funds to one of the networks, for example through a bridge, and waits until they are
 * there. Resolves to whether they are. If so, the offer is fetched again, once, and paid if it is
 * no worse than before.
 */
export type TopUp = (request: TopUpRequest) => Promise<boolean>;

/** Converts a shortfall into the type of a top-up callback. */
export function toTopUpNeed({ candidate, balance }: Shortfall): TopUpNeed {
  const { asset, amount } = candidate;
  return { network: asset.network, asset: asset.address, amount, balance };
}
