import type { Hex } from "@coinslot/protocol";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import type { ClaimableChannel } from "../../ledger/channels/claimable.ts";
import { backOff } from "../back-off.ts";
import { auditMsOf } from "../channel-settings.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { moneyAtRisk } from "../money-at-risk.ts";
import { readByEach } from "../watch/read-by-each.ts";
import type { ClaimMemory } from "./claim-memory.ts";

/** A channel is claimed anew on a sighting after this part of its delay, at the longest. */
const restShare = 4;

/**
 * Channels with unclaimed money, as the endpoint shows them that has most of it withdrawn. The
 * mirror is one endpoint's word, which may hide a withdrawal or show money as claimed. Each audit
 * asks all of them. A false sighting costs a claim that pays nothing, at intervals that double.
 *
 * @throws DatabaseError
 */
export async function seeWithdrawals(
  channels: ChannelsContext,
  memory: ClaimMemory,
  dues: readonly ClaimableChannel[],
): Promise<ClaimableChannel[]> {
  const { context, settings, settlement, place } = channels;
  const { clock, logger } = context;
  const { rpc } = settlement.network;
  if (rpc.endpoints.length < 2 || dues.length === 0) return [...dues];
  if (clock.now() - memory.lookedAt >= auditMsOf(settings)) {
    memory.lookedAt = clock.now();
    memory.sightings = await look(channels, dues);
  }
  return dues.map((due) => {
    const { channel, state, config } = due;
    const sighting = memory.sightings.get(channel.channelId);
    if (sighting === undefined || state === undefined) return due;
    const atRisk = moneyAtRisk(channel, sighting);
    if (atRisk < settings.claimCost || atRisk <= moneyAtRisk(channel, state)) return due;
    const now = clock.now();
    if ((memory.sighted.get(channel.channelId)?.until ?? 0) > now) return due;
    const maxMs = (config.withdrawDelay * 1_000) / restShare;
    backOff(memory.sighted, channel.channelId, { now, maxMs });
    logger.error(
      { network: place.network, channel: channel.channelId, atRisk: `${atRisk}` },
      "one node shows a withdrawal of unclaimed money that another one hides; it is claimed",
    );
    const { balance, totalClaimed, withdrawal } = sighting;
    return { ...due, state: { ...state, balance, totalClaimed, withdrawal } };
  });
}

/** Of each channel, the reading with the most unclaimed money at risk. */
async function look(
  channels: ChannelsContext,
  dues: readonly ClaimableChannel[],
): Promise<Map<Hex, ChannelReading>> {
  const ids = dues.map(({ channel }) => channel.channelId);
  const votes = await readByEach(channels, { ids });
  const sightings = new Map<Hex, ChannelReading>();
  for (const { channel } of dues) {
    for (const reading of votes.get(channel.channelId) ?? []) {
      const known = sightings.get(channel.channelId);
      const before = known === undefined ? 0n : moneyAtRisk(channel, known);
      if (moneyAtRisk(channel, reading) > before) sightings.set(channel.channelId, reading);
    }
  }
  return sightings;
}
