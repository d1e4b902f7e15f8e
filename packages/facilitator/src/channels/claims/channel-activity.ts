import { findSentClaims } from "../../ledger/channels/channel-claims.ts";
import { findMoving } from "../../ledger/channels/channel-state.ts";
import { type ClaimableChannel, eachClaimable } from "../../ledger/channels/claimable.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { moneyAtRisk } from "../money-at-risk.ts";

/** A charge keeps the chain read block by block for this long, by any process. */
const trafficMs = 60_000;

/**
 * Whether a channel with unclaimed money asks for a look at each block: its payer withdraws some of
 * that, and it is worth a claim; or it is charged. The others wait for their claim at any pace.
 */
export function isActive(
  { channel, state }: ClaimableChannel,
  { settings, now }: { settings: Pick<ChannelsContext["settings"], "claimCost">; now: number },
): boolean {
  if (state === undefined) return true;
  const atRisk = moneyAtRisk(channel, state);
  if (atRisk > 0n && atRisk >= settings.claimCost) return true;
  return channel.last !== undefined && Math.abs(now - channel.last.at) < trafficMs;
}

/**
 * The same of all channels of a network, and of those that move, for a process that plans no
 * claims.
 *
 * @throws DatabaseError
 */
export async function areChannelsActive({
  context: { ledger },
  settings,
  place,
}: Pick<ChannelsContext, "context" | "settings" | "place">): Promise<boolean> {
  if ((await findMoving(ledger, place)).length > 0) return true;
  if ((await findSentClaims(ledger, place.network)).length > 0) return true;
  const now = ledger.now();
  for await (const due of eachClaimable(ledger, place)) {
    if (isActive(due, { settings, now })) return true;
  }
  return false;
}
