import { isSameAddress, type PaymentRequirements } from "@coinslot/protocol";
import type { MppMode } from "../../mpp-options.ts";
import type { OfferedWay } from "../../offer/offer.ts";
import type { PaymentTerms } from "../../routes/read-payment-option.ts";

/**
 * Tokens whose EIP-712 domain released buyers of MPP know. The domain is not on the wire. `mppx`
 * throws at a challenge for any other token, and would pay an x402 offer that comes alone.
 *
 * Source: the currencies of mppx 0.11.0.
 */
const knownDomains = [
  {
    network: "eip155:8453",
    asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    name: "USD Coin",
    version: "2",
  },
  {
    network: "eip155:84532",
    asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
    name: "USDC",
    version: "2",
  },
  {
    network: "eip155:42220",
    asset: "0xcebA9300f2b948710d2653dD7B07f33A8B32118C",
    name: "USDC",
    version: "2",
  },
  {
    network: "eip155:11142220",
    asset: "0x01C5C0122039549AD1493B8220cABEdD739BC44E",
    name: "USDC",
    version: "2",
  },
  {
    network: "eip155:42220",
    asset: "0x48065fbBE25f71C9282ddf5e1cD6D6A887483D5e",
    name: "Tether USD",
    version: "1",
  },
] as const;

/**
 * Returns whether a way is offered by MPP, too. A facilitator settles its payments as those of x402
 * version 2.
 */
export function hasChallenge({ requirements, versions, mpp }: OfferedWay): boolean {
  return versions.has(2) && (mpp === "auto" ? isDomainKnown(requirements) : mpp);
}

/** Returns whether a route's way may get a challenge, for any price that its function returns. */
export function mayHaveChallenge(
  { network, price }: Pick<PaymentTerms, "network" | "price">,
  mpp: MppMode,
): boolean {
  if (mpp !== "auto") return mpp;
  return typeof price === "function"
    ? knownDomains.some((known) => known.network === network)
    : isDomainKnown({ network, ...price });
}

/** Returns whether released buyers of MPP can sign for a way's token. */
function isDomainKnown({
  network,
  asset,
  extra,
}: Pick<PaymentRequirements, "network" | "asset" | "extra">): boolean {
  return knownDomains.some(
    (known) =>
      known.network === network &&
      isSameAddress(known.asset, asset) &&
      known.name === extra?.name &&
      known.version === extra.version,
  );
}
