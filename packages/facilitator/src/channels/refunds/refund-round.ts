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
import { readChannels } from "../watch/read-channels.ts";
import type { RefundedSoFar } from "./read-refunded.ts";

/** `stopping`: no event is read any more. */
export type RefundsContext = ChannelsContext & { stopping: AbortSignal };

/** What an endpoint has shown so far. */
export interface ShownByOne extends RefundedSoFar {
  /** The last look, by the clock. */
  at: number;
  /** Time between looks that counts. */
  readingMs: number;
}
export type ShownByEach = Map<RpcEndpointHandle, ShownByOne>;

/** Memory of one process about its refunds. Losing it costs gas at worst. */
export interface RefundMemory {
  /** Refunds that are not sent again until then. */
  rests: Rests<string>;
  /** Refunds whose end or event not all endpoints have shown, until these are asked again. */
  disputes: Rests<string>;
  /** By refund, its transactions in vain that passed another trial, and the last one's block. */
  inVain: Map<string, { tries: number; block: number }>;
  /** Of channels whose refund was sent, from nodes that keep too few states. */
  formerHeads: FormerHeads;
  /** By refund, the events that each endpoint has shown, while it has more blocks to return. */
  shown: Map<string, ShownByEach>;
}

/** An open refund with its channel, read after its lock: nothing is charged on it any more. */
export interface RefundOfChannel {
  refund: OpenRefund;
  channel: Channel;
  config: ChannelConfig;
}

export interface RefundCase extends RefundOfChannel {
  /** The channel at a head of the chain, with its block. */
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

export interface SentRefund extends RefundCase {
  signed: NonNullable<OpenRefund["signed"]>;
}

/** Reads a refund's channel in the ledger. */
export async function readRefundOfChannel(
  { context: { ledger } }: ChannelsContext,
  refund: OpenRefund,
): Promise<RefundOfChannel | undefined> {
  const [channel, config] = await Promise.all([
    readChannel(ledger, refund),
    readChannelConfig(ledger, refund),
  ]);
  return channel && config && { refund, channel, config };
}

/**
 * Reads a refund's channel in the ledger, and at the head of the first endpoint that answers.
 *
 * @throws RpcError, ZodError, ChannelReadError, DatabaseError
 */
export async function openCase(
  channels: ChannelsContext,
  refund: OpenRefund,
): Promise<RefundCase | undefined> {
  const { settlement, place } = channels;
  const { network } = settlement;
  const known = await readRefundOfChannel(channels, refund);
  if (known === undefined) return undefined;
  const header = await network.watcher.read(network.pollMs / 2);
  const block = { number: Number(header.number), hash: header.hash };
  const ids = [refund.channelId];
  const readings = await readChannels(network, { contract: place.contract, ids, block });
  const atHead = readings.get(refund.channelId);
  return atHead && { ...known, atHead };
}
