import { formatMoney } from "../money/amount.ts";
import { findKnownChain, findKnownToken, symbolOf } from "../money/known-chains.ts";
import type { PaymentRequirements } from "../x402/payment-requirements.ts";

/** A price for people. */
export interface PriceDescription {
  /** In whole tokens, such as `0.001`; in units where the token's decimals are not known. */
  amount: string;
  /** `undefined` where they are not known. */
  decimals: number | undefined;
  /** Ticker of the token; the seller's word for it where the token is not a known one. */
  symbol: string;
  /** Name of the network, or its CAIP-2 form. */
  networkName: string;
}

const maxDecimals = 36;

/** Describes the price of one way to pay, as a wallet would show it. */
export function describePrice(way: PaymentRequirements): PriceDescription {
  const { network, asset, amount, extra = {} } = way;
  const networkName = findKnownChain(network)?.name ?? network;
  const known = findKnownToken(network, asset);
  if (known !== undefined) {
    const { decimals } = known;
    return {
      amount: formatMoney(BigInt(amount), decimals),
      decimals,
      symbol: symbolOf(known),
      networkName,
    };
  }
  const { name, decimals } = extra;
  const symbol = typeof name === "string" ? name.slice(0, 32) : asset;
  if (typeof decimals !== "number" || !Number.isInteger(decimals)) {
    return { amount, decimals: undefined, symbol, networkName };
  }
  if (decimals < 0 || decimals > maxDecimals) {
    return { amount, decimals: undefined, symbol, networkName };
  }
  return { amount: formatMoney(BigInt(amount), decimals), decimals, symbol, networkName };
}
