import type { RpcEndpointHandle } from "@coinslot/chain";
import type { ChannelConfig, ChannelRefusalReason } from "@coinslot/protocol";
import type { Channel } from "../../ledger/channels/channel.ts";
import type { OpenRefund } from "../../ledger/channels/channel-refunds.ts";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import { endRefund } from "../../ledger/channels/move-refund.ts";
import { readChannel, readChannelConfig } from "../../ledger/channels/open-channel.ts";
import type { Rests } from "../back-off.ts";
import type { ChannelsContext } from "../channels-context.ts";
import type { FormerHeads } from "../watch/final-by-heads.ts";
import { readBlock } from "../watch/read-block.ts";
import { type BlockId, readChannels } from "../watch/read-channels.ts";
import type { RefundedSoFar } from "./read-refunded.ts";

/** `stopping`: no event is read any more. */
export type RefundsContext = ChannelsContext & { stopping: AbortSignal };

/** What each endpoint has shown so far. */
export type ShownByEach = Map<RpcEndpointHandle, RefundedSoFar>;

/** Memory of one process about its refunds. Losing it costs gas at worst. */
export interface RefundMemory {
  /** Refunds that are not sent again until then. */
  rests: Rests<string>;
  /** Refunds whose end not all endpoints have shown, until these are asked again. */
  disputes: Rests<string>;
  /** By refund, its transactions in vain that passed another trial, and the last one's block. */
  inVain: Map<string, { tries: number; block: number }>;
  /** Of channels whose refund was sent, from nodes that keep too few states. */
  formerHeads: FormerHeads;
  /** By refund, the events of a nonce that each endpoint has shown so far. */
  shown: Map<string, { nonce: bigint; byEach: ShownByEach }>;
}

/** Events of a refund's nonce so far. What was left of an earlier one is signed again. */
export function shownOf({ shown }: RefundMemory, id: string, nonce: bigint): ShownByEach {
  const known = shown.get(id);
  if (known?.nonce === nonce) return known.byEach;
  const byEach: ShownByEach = new Map();
  shown.set(id, { nonce, byEach });
  return byEach;
}

/** An open refund with its channel, read after its lock: nothing is charged on it any more. */
export interface RefundCase {
  refund: OpenRefund;
  channel: Channel;
  config: ChannelConfig;
  head: BlockId;
  /** The channel at the head. */
  atHead: ChannelReading;
}

/**
 * A refund without an end is given up after this, where no signature of it is good. An endpoint
 * that does not answer has its say for the first ten minutes of that.
 */
const patienceMs = 1_200_000;

/** Whether a refund has had its time; or the clock was set back since, by as much. */
export function isOverdue({ context: { ledger } }: ChannelsContext, refund: OpenRefund): boolean {
  return Math.abs(ledger.now() - refund.createdAt) >= patienceMs;
}

/** Ends a refund in vain. */
export async function failRefund(
  { context, metrics, place: { network } }: ChannelsContext,
  refund: OpenRefund,
  reason: ChannelRefusalReason,
): Promise<void> {
  if (!(await endRefund(context.ledger, refund, { state: "failed", reason }))) return;
  metrics.refunds.inc({ network, outcome: "failed" });
  await context.faultPoint("channel_refund_ended");
}

/**
 * Reads all that a refund is decided by.
 *
 * @throws RpcError, ZodError, ChannelReadError, DatabaseError
 */
export async function openCase(
  channels: ChannelsContext,
  refund: OpenRefund,
): Promise<RefundCase | undefined> {
  const { context, settlement, place } = channels;
  const { network } = settlement;
  const [channel, config] = await Promise.all([
    readChannel(context.ledger, refund),
    readChannelConfig(context.ledger, refund),
  ]);
  if (channel === undefined || config === undefined) return undefined;
  // The signed amount must know of each withdrawal.
  const maxAgeMs = refund.state === "locked" ? 0 : network.pollMs / 2;
  const header = await network.watcher.read(maxAgeMs);
  const head = { number: Number(header.number), hash: header.hash };
  const { contract } = place;
  const ids = [refund.channelId];
  const atHead = (await readChannels(network, { contract, ids, block: head })).get(
    refund.channelId,
  );
  return atHead && { refund, channel, config, head, atHead };
}

/**
 * The case's channel at a depth below the head; `undefined` where the chain is not that high.
 *
 * @throws RpcError, ZodError, ChannelReadError where a node lacks the state
 */
export async function readAtDepth(
  { settlement: { network }, place: { contract } }: Pick<ChannelsContext, "settlement" | "place">,
  { refund: { channelId }, head, atHead }: RefundCase,
  depth: number,
): Promise<ChannelReading | undefined> {
  if (depth === 0) return atHead;
  const block = await readBlock(network.rpc, head.number - depth);
  if (block === undefined) return undefined;
  return (await readChannels(network, { contract, ids: [channelId], block })).get(channelId);
}
