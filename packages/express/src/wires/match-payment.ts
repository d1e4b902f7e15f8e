import { recoverPayer } from "@coinslot/protocol";
import type { Offer } from "../offer/offer.ts";
import type { Purchase } from "../offer/purchase.ts";
import type { Presented } from "./wire.ts";

/**
 * Finds the part of this request's offer that a payment pays.
 *
 * @returns `undefined` when it pays nothing that is offered.
 */
export async function matchPayment(
  { wire, credential }: Presented,
  offer: Offer,
): Promise<Purchase | undefined> {
  const purchases = wire.match(credential, offer);
  if (purchases.length < 2) return purchases[0];
  // A payment may name no asset. Its signature shows it, being made under the asset's domain. A
  // contract's signature shows nothing: there, the first is as good as any.
  for (const purchase of purchases) {
    const signer = await recoverPayer(purchase.payment);
    if (signer === purchase.payment.authorization.from) return purchase;
  }
  return purchases[0];
}
