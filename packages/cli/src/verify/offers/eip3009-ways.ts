import type { Offer } from "@coinslot/protocol";
import { toWay, type Way } from "../way.ts";

/** The ways of an x402 offer that an EIP-3009 authorization pays. */
export function eip3009Ways({ accepts, resource }: Offer): Way[] {
  return accepts
    .filter(({ requirements: { scheme, extra } }) => {
      const method = extra?.assetTransferMethod ?? "eip3009";
      return scheme === "exact" && method === "eip3009";
    })
    .map((offered) => toWay(offered, resource));
}
