import type { DiscoverySettings } from "./discovery-options.ts";
import type { ListedRoute } from "./list-routes.ts";
import { priceRoute } from "./priced-route.ts";

/** Places of offers in a 402 answer, by the name of their protocol in `x-payment-info`. */
const places = new Map([
  ["x402", "as x402 (header PAYMENT-REQUIRED, and the JSON body)"],
  ["mpp", "as MPP (WWW-Authenticate: Payment)"],
]);

/**
 * Advice for agents: the seller's, and how a call is paid here. It yields between routes, while it
 * looks for the protocols that some route is sold by.
 */
export function* writeGuidance(
  routes: readonly ListedRoute[],
  { guidance }: Pick<DiscoverySettings, "guidance">,
): Generator<"", string> {
  const own = guidance === undefined ? "" : `${guidance.trim()}\n\n`;
  const names = new Set<string>();
  for (const route of routes) {
    for (const name of priceRoute(route).payment.protocols.flatMap(Object.keys)) names.add(name);
    if (names.size === places.size) break;
    yield "";
  }
  const offers = [...places].flatMap(([name, place]) => (names.has(name) ? [place] : []));
  return `${own}Operations with x-payment-info are sold by the request. Send the request without a payment: the answer is 402 with every way to pay, ${offers.join(" and ")}. Sign one way, and send the same request again with it. The 402 decides price and recipient, this document does not. An Idempotency-Key of 16 or more characters brings a lost answer again for the same payment. Examples are in /llms.txt.`;
}
