import type { BlockHeader } from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import type { Lease } from "@coinslot/storage";
import { findAbove, findKnown, findMoving } from "../../ledger/channels/channel-state.ts";
import { type ChannelWatch, readWatch, recordWatch } from "../../ledger/channels/channel-watch.ts";
import { eachClaimable } from "../../ledger/channels/claimable.ts";
import type { MirrorOutcome } from "../../ledger/channels/mirror-channel.ts";
import { poolWithSignal } from "../../settle/evidence/with-signal.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { moneyAtRisk } from "../money-at-risk.ts";
import { mirrorChannels, type Wanted } from "./mirror-channels.ts";
import { readBlock } from "./read-block.ts";
import { readChangedChannels } from "./read-events.ts";

/** Behind more blocks, events are not caught up with: each mirror is read anew before its use. */
const maxGap = 5_000;

/** A round that has ended. */
type KnownRound = Pick<ChannelWatch, "block" | "since">;

/** The watcher of one process, while it holds the lease. */
export interface Watching {
  lease: Lease;
  /** The last round under this lease. */
  last: KnownRound | undefined;
  /** When the last new block was recorded under this lease, by the clock. */
  movedAt: number | undefined;
  /** When all channels with unclaimed money were read last, by the clock. */
  auditedAt: number;
  /** Since when the chain has been below the last round's block, by the clock. */
  behindSince: number | undefined;
}

/** `lease_lost`: another process watches. `waiting`: the node is behind the ledger. */
export type RoundOutcome = "watched" | "waiting" | "lease_lost";

/**
 * Brings all mirrors to the head, and then records its block. It reads the channels that an event
 * names, those that move, and in each audit all with unclaimed money. A node that leaves out an
 * event hides a withdrawal until the next audit, and no longer.
 *
 * A round that fails records nothing, so that vouchers are refused once the last block is too old.
 *
 * @param options.signal ends the round, by its reason
 * @throws RpcError, ZodError, ChannelReadError, DatabaseError
 */
export async function watchRound(
  allChannels: ChannelsContext,
  watching: Watching,
  { auditMs, signal }: { auditMs: number; signal: AbortSignal },
): Promise<RoundOutcome> {
  const channels = stoppedBy(allChannels, signal);
  const { context, settlement, place, metrics } = channels;
  const { ledger, clock } = context;
  const { network } = settlement;
  const header = await network.watcher.read(network.pollMs / 2);
  const head = { number: Number(header.number), hash: header.hash, time: Number(header.timestamp) };
  const isFirst = watching.last === undefined;
  const known = watching.last ?? (await readWatch(ledger, place));
  const order = await compare(channels, watching, { known, head });
  if (order === "behind") return "waiting";
  const isFalse = order === "false";
  const isAudit = isFirst || isFalse || clock.now() - watching.auditedAt >= auditMs;
  if (known?.block.hash === head.hash && !isAudit) return "watched";
  const range = await findRange(channels, isFalse ? undefined : known, head.number);
  const wanted = await findWanted(channels, { ...range, head, isAudit, isFalse });
  const outcomes = await mirrorChannels(channels, {
    wanted,
    head: header,
    lease: watching.lease,
  });
  for (const [channelId, outcome] of outcomes) report(channels, channelId, outcome);
  if ([...outcomes.values()].some(({ outcome }) => outcome === "lease_lost")) return "lease_lost";
  const { since } = range;
  if (!(await recordWatch(ledger, watching.lease, { ...place, block: head, since }))) {
    return "lease_lost";
  }
  if (watching.last?.block.hash !== head.hash) watching.movedAt = clock.now();
  watching.last = { block: head, since };
  if (isAudit) watching.auditedAt = clock.now();
  metrics.watchedBlock.set({ network: place.network }, head.number);
  metrics.watchedAt.set({ network: place.network }, head.time);
  return "watched";
}

/** The same with requests that a signal ends. */
function stoppedBy(channels: ChannelsContext, signal: AbortSignal): ChannelsContext {
  const { settlement } = channels;
  const { network } = settlement;
  const rpc = poolWithSignal(network.rpc, signal);
  return { ...channels, settlement: { ...settlement, network: { ...network, rpc } } };
}

/**
 * Compares the head with the last round's block. `behind`: the node has not come there yet.
 * `false`: no chain has come there. Otherwise one node's far too high head would stop the watch
 * until the chain is as high. No withdrawal would be seen. A node that is merely behind is not
 * believed: its blocks are old, or it is within `finalAfter`, or it catches up.
 */
async function compare(
  { context: { clock, ledger, logger }, settlement: { network }, settings }: ChannelsContext,
  watching: Watching,
  { known, head }: { known: KnownRound | undefined; head: ChannelWatch["block"] },
): Promise<"ahead" | "behind" | "false"> {
  const { behindSince } = watching;
  watching.behindSince = undefined;
  if (known === undefined || head.number >= known.block.number) return "ahead";
  const now = await readBlock(network.rpc, known.block.number);
  if (now !== undefined) return now.hash === known.block.hash ? "behind" : "ahead";
  watching.behindSince = behindSince ?? clock.now();
  const isFar = known.block.number - head.number > network.finalAfter;
  const isNew = ledger.now() / 1_000 - head.time <= settings.withdrawDelay / 4;
  const isLong = clock.now() - watching.behindSince >= network.times.loseMs();
  if (!isFar || !isNew || !isLong) return "behind";
  logger.error(
    { network: network.network, block: known.block.number, head: head.number },
    "a node called a block of channels newer than the chain is; they are read anew",
  );
  return "false";
}

/**
 * The blocks whose events are not known. Where the last known block has left the chain, those that
 * may have been replaced are among them.
 */
async function findRange(
  { settlement: { network }, context: { logger } }: ChannelsContext,
  known: KnownRound | undefined,
  head: number,
): Promise<{ from: number; since: number }> {
  const anew = { from: head, since: head };
  if (known === undefined) return anew;
  const { block, since } = known;
  if (head - block.number > maxGap) {
    logger.warn(
      { network: network.network, from: block.number, to: head },
      "events of channels are not known for a while; each channel is read anew before it is used",
    );
    return anew;
  }
  const now = block.number <= head ? await readBlock(network.rpc, block.number) : undefined;
  if (now?.hash === block.hash) return { from: Math.min(block.number + 1, head), since };
  // A deeper one may have replaced any block.
  if (head - block.number > network.finalAfter) return anew;
  return { from: Math.max(0, Math.min(block.number, head) - network.finalAfter), since };
}

/** The channels to be read in a round. */
async function findWanted(
  { context: { ledger }, settlement: { network }, place }: ChannelsContext,
  options: {
    from: number;
    head: Pick<BlockHeader, "hash"> & { number: number };
    isAudit: boolean;
    isFalse: boolean;
  },
): Promise<Wanted[]> {
  const { from, head, isAudit, isFalse } = options;
  const changed = await readChangedChannels(network.rpc, {
    contract: place.contract,
    from: BigInt(from),
    to: BigInt(head.number),
  });
  const wanted = new Map<Hex, Wanted>();
  for (const channelId of await findKnown(ledger, { ...place, ids: [...changed] })) {
    wanted.set(channelId, { channelId });
  }
  if (isAudit) {
    for await (const { channel, state } of eachClaimable(ledger, place)) {
      wanted.set(channel.channelId, { channelId: channel.channelId, block: state?.block });
    }
  }
  for (const moving of await findMoving(ledger, place)) wanted.set(moving.channelId, moving);
  if (isFalse) {
    const above = await findAbove(ledger, { ...place, number: head.number });
    for (const mirrored of above) wanted.set(mirrored.channelId, mirrored);
  }
  return [...wanted.values()];
}

function report(
  { context: { logger }, metrics, place: { network } }: ChannelsContext,
  channelId: Hex,
  outcome: MirrorOutcome,
): void {
  if (outcome.outcome !== "written") return;
  const { lost, lostBefore, charged, state } = outcome;
  if (lost > lostBefore) {
    metrics.lost.inc({ network }, Number(lost - lostBefore));
    logger.error(
      { network, channel: channelId, lost: `${lost}` },
      "a channel's money is lost: it was charged, and the escrow has too little of it left",
    );
  }
  const atRisk = moneyAtRisk({ charged, isRefunding: false }, state);
  if (state.withdrawal === undefined || atRisk === 0n) return;
  const { initiatedAt } = state.withdrawal;
  logger.warn(
    { network, channel: channelId, atRisk: `${atRisk}`, initiatedAt },
    "a payer withdraws unclaimed money from a channel; it is claimed at once",
  );
}
