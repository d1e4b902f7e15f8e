import { findKnownToken, formatMoney } from "@coinslot/protocol";
import type { PaymentTerms } from "../routes/read-payment-option.ts";
import type { DiscoveryTerms } from "./route-discovery.ts";

/** A price in the form of `@agentcash/discovery`: dollars in decimals. */
export type PriceInfo =
  | { mode: "fixed"; currency: "USD"; amount: string }
  | { mode: "dynamic"; currency?: "USD"; min?: string; max?: string };

/** Finer than any known token, so that amounts of all compare. */
const decimals = 18;

/**
 * The price of a route. It is fixed where every way to pay costs the same in known dollar tokens.
 * Readers take an amount without a currency for dollars, so other tokens get none.
 */
export function priceInfoOf(
  accepts: readonly PaymentTerms[],
  bounds: DiscoveryTerms["bounds"],
): PriceInfo {
  const range = knownRange(accepts);
  if (range === undefined) {
    return bounds ? { mode: "dynamic", currency: "USD", ...bounds } : { mode: "dynamic" };
  }
  const min = formatMoney(range.min, decimals);
  const max = formatMoney(range.max, decimals);
  if (min === max) return { mode: "fixed", currency: "USD", amount: min };
  return { mode: "dynamic", currency: "USD", min, max };
}

/** Least and largest price in dollars; `undefined` where one is not known. */
export function knownRange(
  accepts: readonly PaymentTerms[],
): { min: bigint; max: bigint } | undefined {
  const amounts = accepts.map(inDollars);
  const [first] = amounts;
  if (first === undefined) return undefined;
  let [min, max] = [first, first];
  for (const amount of amounts) {
    if (amount === undefined) return undefined;
    if (amount < min) min = amount;
    if (amount > max) max = amount;
  }
  return { min, max };
}

function inDollars({ network, price }: PaymentTerms): bigint | undefined {
  if (typeof price === "function") return undefined;
  const token = findKnownToken(network, price.asset);
  if (token === undefined) return undefined;
  return BigInt(price.amount) * 10n ** BigInt(decimals - token.decimals);
}
