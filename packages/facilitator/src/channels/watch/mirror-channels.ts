import type { BlockHeader, RpcRequester } from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import type { Lease } from "@coinslot/storage";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import { type MirrorOutcome, mirrorChannel } from "../../ledger/channels/mirror-channel.ts";
import type { SettlementNetwork } from "../../settle/context.ts";
import type { EscrowContext } from "../channels-context.ts";
import { type FormerHeads, finalByHeads } from "./final-by-heads.ts";
import { readBlock } from "./read-block.ts";
import { type BlockId, isStateMissing, readChannels } from "./read-channels.ts";

const formerHeads = new WeakMap<SettlementNetwork, FormerHeads>();

/** A channel to be read, with the block of its mirror where the ledger has one. */
export interface Wanted {
  channelId: Hex;
  block?: BlockId | undefined;
}

/**
 * Reads channels at the head, at the depth at which a deposit counts, and at `finalAfter`. Writes
 * their mirrors in the order of their ids.
 *
 * @throws RpcError, ZodError, ChannelReadError where the head or the former depth cannot be read
 */
export async function mirrorChannels(
  channels: EscrowContext,
  options: { wanted: readonly Wanted[]; head: BlockHeader; lease: Lease | undefined },
): Promise<Map<Hex, MirrorOutcome>> {
  const { context, settlement, place } = channels;
  const { network } = settlement;
  const { lease } = options;
  const outcomes = new Map<Hex, MirrorOutcome>();
  const wanted = [...options.wanted].sort((a, b) => (a.channelId < b.channelId ? -1 : 1));
  if (wanted.length === 0) return outcomes;
  const { contract } = place;
  const ids = wanted.map(({ channelId }) => channelId);
  const head = { number: Number(options.head.number), hash: options.head.hash };
  const atHead = await readChannels(network, { contract, ids, block: head });
  const served = await readServed(channels, atHead, head);
  const final = await readFinal(channels, atHead, head);
  const replaced = await findReplaced(network.rpc, wanted, head);
  for (const id of ids) {
    const [headReading, servedReading] = [atHead.get(id), served.get(id)];
    if (headReading === undefined || servedReading === undefined) continue;
    const outcome = await mirrorChannel(context.ledger, {
      ...place,
      channelId: id,
      head: headReading,
      served: servedReading,
      final: final.get(id),
      lease,
      replaces: replaced.get(id),
      maxLead: network.finalAfter,
    });
    outcomes.set(id, outcome);
    if (outcome.outcome === "lease_lost") break;
  }
  return outcomes;
}

/** Each channel at the depth that its balance asks for. */
async function readServed(
  { settlement: { network }, place: { contract } }: EscrowContext,
  atHead: ReadonlyMap<Hex, ChannelReading>,
  head: BlockId,
): Promise<Map<Hex, ChannelReading>> {
  const served = new Map<Hex, ChannelReading>();
  const byDepth = new Map<number, Hex[]>();
  for (const [id, reading] of atHead) {
    const depth = network.serveAfter({ value: reading.balance });
    if (depth === 0) served.set(id, reading);
    else byDepth.set(depth, [...(byDepth.get(depth) ?? []), id]);
  }
  for (const [depth, ids] of byDepth) {
    const block = await readBlock(network.rpc, Math.max(0, head.number - depth));
    if (block === undefined) throw new TypeError(`A node has no block ${head.number - depth}`);
    for (const each of await readChannels(network, { contract, ids, block })) served.set(...each);
  }
  return served;
}

/** Each at `finalAfter`. A node may keep too few states for that: see `finalByHeads`. */
async function readFinal(
  { settlement: { network }, place: { contract } }: EscrowContext,
  atHead: ReadonlyMap<Hex, ChannelReading>,
  head: BlockId,
): Promise<Map<Hex, ChannelReading>> {
  const height = head.number - network.finalAfter;
  if (height < 0) return new Map();
  const block = height === head.number ? head : await readBlock(network.rpc, height);
  if (block === undefined) return new Map();
  const former = formerHeads.get(network) ?? new Map();
  formerHeads.set(network, former);
  try {
    const final = await readChannels(network, { contract, ids: [...atHead.keys()], block });
    former.clear();
    return final;
  } catch (error) {
    if (!isStateMissing(error)) throw error;
    return finalByHeads(network, former, { atHead, head });
  }
}

/** Mirrors above the head in whose place the chain has another block. */
async function findReplaced(
  rpc: RpcRequester,
  wanted: readonly Wanted[],
  head: BlockId,
): Promise<Map<Hex, Hex>> {
  const replaced = new Map<Hex, Hex>();
  for (const { channelId, block } of wanted) {
    if (block === undefined || block.number <= head.number) continue;
    const now = await readBlock(rpc, block.number);
    if (now !== undefined && now.hash !== block.hash) replaced.set(channelId, block.hash);
  }
  return replaced;
}
