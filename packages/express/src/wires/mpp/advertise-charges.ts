import { chainIdOf, evmCharge } from "@coinslot/protocol";
import { getAddress } from "viem";
import type { AdvertisedWay, Advertisement } from "../wire.ts";
import { mayHaveChallenge } from "./has-challenge.ts";
import { maxChallenges } from "./write-challenges.ts";

/**
 * The charges of a route's ways to pay, in the form of draft-payment-discovery-00. An amount that
 * depends on the request is `null`.
 */
export function advertiseCharges(ways: readonly AdvertisedWay[]): Advertisement {
  const charges = ways
    .filter((way) => way.versions.has(2) && mayHaveChallenge(way, way.mpp))
    .slice(0, maxChallenges);
  const currencies = new Set(charges.flatMap(currencyOf));
  return {
    protocols: [...currencies].map((currency) => ({ mpp: { ...evmCharge, currency } })),
    offers: charges.map(offerOf),
  };
}

function offerOf({ network, price }: AdvertisedWay): object {
  return {
    ...evmCharge,
    ...(typeof price === "function"
      ? { amount: null }
      : { amount: price.amount, currency: getAddress(price.asset) }),
    methodDetails: { chainId: chainIdOf(network) },
  };
}

/**
 * The currency that an entry of `protocols` must name. A function's token is known to be a dollar
 * under `auto` alone: every token with a known domain is one.
 */
function currencyOf({ price, mpp }: AdvertisedWay): string[] {
  if (typeof price !== "function") return [getAddress(price.asset)];
  return mpp === "auto" ? ["USD"] : [];
}
