import { findKnownToken, formatMoney, type Offer, readChannelOffer } from "@coinslot/protocol";

/** Of the released client of the reference: five times its limit for one payment, a dollar. */
const maxReferenceDeposit = 5n;
const usualDecimals = 6;

/**
 * Channels of an offer whose `minDeposit` the released client of the reference never deposits, with
 * its default limits. Returns a warning, or `undefined`.
 */
export function findLargeDeposit({ accepts }: Offer): string | undefined {
  for (const { requirements } of accepts) {
    const offer = readChannelOffer(requirements);
    if (offer?.minDeposit === undefined) continue;
    const { network, token, minDeposit } = offer;
    const decimals = findKnownToken(network, token)?.decimals ?? usualDecimals;
    if (minDeposit <= maxReferenceDeposit * 10n ** BigInt(decimals)) continue;
    const asked = formatMoney(minDeposit, decimals);
    return `a channel on ${network} asks for a deposit of ${asked}, and @x402/evm deposits at most ${maxReferenceDeposit} with its default limits: lower minDeposit`;
  }
  return undefined;
}
