import type { SignedPayment } from "../sign/signed-payment.ts";
import { mpp } from "./mpp/mpp.ts";
import type { OfferContext, OfferedWay, Protocol, Wire } from "./wire.ts";
import { x402 } from "./x402/x402.ts";

/** Every wire. The only file outside a wire's own that imports one. */
const wires: Readonly<Record<Protocol, Wire>> = { x402, mpp };

/**
 * Reads the ways to pay of a 402 answer, in the order of the protocols.
 *
 * @returns `undefined` when the answer is an offer in none of them
 */
export async function readWays(
  response: Response,
  { protocols, ...context }: OfferContext & { protocols: readonly Protocol[] },
): Promise<OfferedWay[] | undefined> {
  const offers: OfferedWay[][] = [];
  // One by one: each reads a copy of the answer.
  for (const protocol of protocols) {
    const ways = await wires[protocol].readOffer(response, context);
    if (ways !== undefined) offers.push(ways);
  }
  return offers.length === 0 ? undefined : offers.flat();
}

/** Returns whether a request carries a payment, in any protocol. */
export function carriesPayment(headers: Headers): boolean {
  return Object.values(wires).some((wire) => wire.carriesPayment(headers));
}

/** The wire of a signed payment: the name of its header implies it. */
export function wireOf({ header }: Pick<SignedPayment, "header">): Wire {
  return Object.values(wires).find((wire) => wire.writes(header.name)) ?? x402;
}
