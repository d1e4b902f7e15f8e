import type { Answer } from "../ask-seller.ts";
import type { Finding } from "../check.ts";
import { type Way, type WireName, wireNames } from "../way.ts";
import { readMppOffer } from "./mpp-offer.ts";
import { readV1Offer } from "./v1-offer.ts";
import { readV2Offer } from "./v2-offer.ts";

/** The part of an answer that one protocol's clients read. */
export interface WireOffer extends Finding {
  /** The ways to pay by EIP-3009. */
  ways: Way[];
}

/** Offers of an unpaid answer, by protocol. */
export type Offers = Readonly<Record<WireName, WireOffer>>;

/** Reads an unpaid answer as the clients of each protocol do. */
export function readOffers(answer: Answer): Offers {
  return {
    "x402 v1": readV1Offer(answer),
    "x402 v2": readV2Offer(answer),
    MPP: readMppOffer(answer),
  };
}

/** The protocols that an answer offers. */
export function offeredWires(offers: Offers): WireName[] {
  return wireNames.filter((wire) => offers[wire].status !== "not offered");
}
