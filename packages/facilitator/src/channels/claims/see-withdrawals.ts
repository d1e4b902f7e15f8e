import type { Hex } from "@coinslot/protocol";
import type { Channel } from "../../ledger/channels/channel.ts";
import type { ClaimableChannel } from "../../ledger/channels/claimable.ts";
import { backOff } from "../back-off.ts";
import { auditMsOf } from "../channel-settings.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { moneyAtRisk } from "../money-at-risk.ts";
import type { ChannelVote, ChannelVotes } from "../watch/read-by-each.ts";
import type { ClaimMemory, SightingId } from "./claim-memory.ts";

/** A sighting of one endpoint is answered anew after this part of a delay, at the longest. */
const restShare = 4;

/** A due channel as an endpoint shows it that has unclaimed money withdrawn. */
export interface SightedChannel extends ClaimableChannel {
  /** `undefined`: as in the mirror. */
  sighting?: SightingId | undefined;
}

/**
 * Channels with unclaimed money, each as an endpoint shows it whose withdrawal is more urgent than
 * that of the mirror. The mirror is one endpoint's word. It may hide a withdrawal, name another
 * date for it, or show money as claimed. Each audit asks all endpoints, and no claim waits for a
 * slow one. Channels with such a withdrawal are asked for again two blocks later. It counts once
 * the endpoint shows it twice, for one that is behind by a block lies about nothing.
 *
 * The word of no endpoint stands in the way of another's: each one's sightings are answered by
 * themselves. A false one costs a claim that pays nothing, at intervals that double.
 */
export function seeWithdrawals(
  channels: ChannelsContext,
  memory: ClaimMemory,
  dues: readonly ClaimableChannel[],
): SightedChannel[] {
  const { context, settings, settlement } = channels;
  const { clock } = context;
  const { network } = settlement;
  if (dues.length === 0) memory.seen.clear();
  if (network.rpc.endpoints.length < 2 || dues.length === 0) return [...dues];
  const now = clock.now();
  const votes = memory.look.take();
  if (votes === undefined) {
    const isAudit = now >= memory.auditAt;
    if (!isAudit && now < memory.lookAt) return [...dues];
    const ids = inTurn(memory, dues).map(({ channel }) => channel.channelId);
    const seenIds = new Set<string>([...memory.seen].map(channelOf));
    if (!memory.look.begin(isAudit ? ids : ids.filter((id) => seenIds.has(id)))) return [...dues];
    memory.lookAt = Number.POSITIVE_INFINITY;
    if (isAudit) memory.auditAt = now + auditMsOf(settings);
    return [...dues];
  }
  for (const [id, { isUnreached }] of votes) if (!isUnreached) memory.askedAt.set(id, now);
  const before = memory.seen;
  memory.seen = new Set();
  const seen = dues.map((due) => findSighting(channels, memory, { due, votes, before }) ?? due);
  const looked: ReadonlyMap<string, ChannelVotes> = votes;
  for (const sighting of before) {
    // Its endpoint may not have answered this time.
    const { readings, awaited } = looked.get(channelOf(sighting)) ?? { readings: [], awaited: 0 };
    const isAnswered = readings.some(({ endpoint }) => sighting.endsWith(`/${endpoint}`));
    if (awaited > 0 && !isAnswered) memory.seen.add(sighting);
  }
  if (memory.seen.size > 0) {
    // Two blocks: by then an endpoint that was behind by one has come there.
    const soonMs = Math.max(network.pollMs, 2 * network.blocks.blockTimeMs());
    memory.lookAt = Math.min(memory.lookAt, now + soonMs);
  }
  return seen;
}

/** The channel of a sighting. */
export function channelOf(sighting: SightingId): string {
  return sighting.slice(0, sighting.indexOf("/"));
}

/**
 * Those first that were not asked about for the longest time: a look may end before it has asked
 * for all. Then the largest sums. The mirror does not decide: a node would choose who is left out.
 */
function inTurn(
  { askedAt, paid }: Pick<ClaimMemory, "askedAt" | "paid">,
  dues: readonly ClaimableChannel[],
): ClaimableChannel[] {
  const timeOf = ({ channel }: ClaimableChannel) => askedAt.get(channel.channelId) ?? 0;
  const sumOf = ({ channel }: ClaimableChannel) =>
    channel.charged - (paid.get(channel.channelId) ?? 0n);
  return [...dues].sort((a, b) => timeOf(a) - timeOf(b) || Number(sumOf(b) - sumOf(a)));
}

/** The sighting of a channel that is to be answered now. The others are noted for the next look. */
function findSighting(
  { context: { clock, logger }, settings: { claimCost }, place: { network } }: ChannelsContext,
  memory: ClaimMemory,
  {
    due,
    votes,
    before,
  }: { due: ClaimableChannel; votes: Map<Hex, ChannelVotes>; before: ReadonlySet<SightingId> },
): SightedChannel | undefined {
  const { channel, state } = due;
  const { channelId } = channel;
  if (state === undefined) return undefined;
  let found: SightedChannel | undefined;
  for (const vote of votes.get(channelId)?.readings ?? []) {
    const sighting: SightingId = `${channelId}/${vote.endpoint}`;
    const isClaimable = claimableOf(channel, vote) > vote.totalClaimed;
    const atRisk = moneyAtRisk(channel, vote);
    const isWorth = atRisk > 0n && atRisk >= claimCost;
    if (!isClaimable || !isWorth || isUrgentAlike(due, vote)) continue;
    if ((memory.sighted.get(sighting)?.until ?? 0) > clock.now()) {
      // It was not answered: it is looked for until then.
      if (before.has(sighting)) memory.seen.add(sighting);
      continue;
    }
    if (found !== undefined || !before.has(sighting)) {
      memory.seen.add(sighting);
      continue;
    }
    const { balance, totalClaimed, withdrawal } = vote;
    found = { ...due, sighting, state: { ...state, balance, totalClaimed, withdrawal } };
    logger.error(
      { network, channel: channelId, endpoint: vote.endpoint },
      "endpoints differ about a withdrawal of unclaimed money; it is claimed as this one shows it",
    );
  }
  return found;
}

/** Whether the mirror alone has as much claimed, at least as soon. */
function isUrgentAlike({ channel, state }: ClaimableChannel, vote: ChannelVote): boolean {
  if (state?.withdrawal === undefined || vote.withdrawal === undefined) return false;
  return (
    state.withdrawal.initiatedAt <= vote.withdrawal.initiatedAt &&
    moneyAtRisk(channel, state) >= moneyAtRisk(channel, vote) &&
    state.totalClaimed <= vote.totalClaimed &&
    claimableOf(channel, state) >= claimableOf(channel, vote)
  );
}

/** The sum that the escrow may have paid of a channel, in all. */
function claimableOf({ charged }: Channel, { balance }: Pick<ChannelVote, "balance">): bigint {
  if (balance < charged) return balance;
  return charged;
}

/**
 * Lets sightings rest. One whose row could not be sent is looked for again sooner than the others.
 */
export function restSightings(
  { context: { clock }, settings }: ChannelsContext,
  memory: ClaimMemory,
  { dues, answered }: { dues: readonly SightedChannel[]; answered: readonly SightedChannel[] },
): void {
  const now = clock.now();
  const ended = new Set(answered.map(({ sighting }) => sighting));
  for (const { sighting, config } of dues) {
    if (sighting === undefined) continue;
    const isAnswered = ended.has(sighting);
    const longestMs = (config.withdrawDelay * 1_000) / restShare;
    const maxMs = isAnswered ? longestMs : Math.min(longestMs, auditMsOf(settings));
    backOff(memory.sighted, sighting, { now, maxMs });
    if (isAnswered) continue;
    memory.seen.add(sighting);
    memory.lookAt = Math.min(memory.lookAt, memory.sighted.get(sighting)?.until ?? now);
  }
}
