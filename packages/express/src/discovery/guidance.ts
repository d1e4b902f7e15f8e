import type { DiscoverySettings } from "./discovery-options.ts";
import type { PricedRoute } from "./priced-route.ts";

/** Advice for agents: the seller's, and how a call is paid here. */
export function writeGuidance(
  routes: readonly PricedRoute[],
  { guidance }: Pick<DiscoverySettings, "guidance">,
): string {
  const own = guidance === undefined ? "" : `${guidance.trim()}\n\n`;
  return `${own}Operations with x-payment-info are sold by the request. Send the request without a payment: the answer is 402 with every way to pay, ${offersOf(routes)}. Sign one way, and send the same request again with it. The 402 decides price and recipient, this document does not. An Idempotency-Key of 16 or more characters brings a lost answer again for the same payment. Examples are in /llms.txt.`;
}

/** The places of offers in a 402 answer, of the protocols that some route is sold by. */
function offersOf(routes: readonly PricedRoute[]): string {
  const names = new Set(routes.flatMap(({ payment }) => payment.protocols.flatMap(Object.keys)));
  return [
    ...(names.has("x402") ? ["as x402 (header PAYMENT-REQUIRED, and the JSON body)"] : []),
    ...(names.has("mpp") ? ["as MPP (WWW-Authenticate: Payment)"] : []),
  ].join(" and ");
}
