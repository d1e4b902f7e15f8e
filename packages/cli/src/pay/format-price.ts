import type { PaymentTerms } from "@coinslot/client";
import { findKnownToken, formatMoney, isSameAddress, symbolOf } from "@coinslot/protocol";
import { printable } from "./printable.ts";
import type { SpendableToken } from "./spendable-tokens.ts";

/**
 * A price, such as `0.001 USDT0`; of tokens that are in no table of ours, also the signed raw
 * value.
 */
export function formatPrice(
  { network, asset, amount }: Pick<PaymentTerms, "network" | "asset" | "amount">,
  tokens: readonly SpendableToken[],
): string {
  const token = tokens.find(
    (each) => each.network === network && isSameAddress(each.address, asset),
  );
  if (token === undefined) return `${amount} units of ${asset}`;
  const price = `${formatMoney(BigInt(amount), token.decimals)} ${printable(symbolOf(token))}`;
  return findKnownToken(network, asset) ? price : `${price} (${amount} units of ${asset})`;
}
