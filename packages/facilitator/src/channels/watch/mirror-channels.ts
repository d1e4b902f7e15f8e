import type { BlockHeader, RpcRequester } from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import type { Lease } from "@coinslot/storage";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import { type MirrorOutcome, mirrorChannel } from "../../ledger/channels/mirror-channel.ts";
import type { SettlementNetwork } from "../../settle/context.ts";
import type { EscrowContext } from "../channels-context.ts";
import { type FormerHeads, finalByHeads } from "./final-by-heads.ts";
import { readBlock, readBlocks } from "./read-block.ts";
import { type BlockId, isStateMissing, readChannels } from "./read-channels.ts";

type Depth = "served" | "final";

/** By what one network has alone, whatever requester its parts are given. */
const formerHeads = new WeakMap<SettlementNetwork["watcher"], Record<Depth, FormerHeads>>();

function formersOf({ watcher }: SettlementNetwork): Record<Depth, FormerHeads> {
  const formers = formerHeads.get(watcher) ?? { served: new Map(), final: new Map() };
  formerHeads.set(watcher, formers);
  return formers;
}

/** A channel to be read, with the block of its mirror where the ledger has one. */
export interface Wanted {
  channelId: Hex;
  block?: BlockId | undefined;
}

/**
 * Reads channels at the head, at the depth at which a deposit counts, and at `finalAfter`. Writes
 * their mirrors in the order of their ids.
 *
 * @throws RpcError, ZodError, ChannelReadError where the head cannot be read
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
  const depth = network.finalAfter;
  const final = await readBelow(channels, atHead, { head, depth, name: "final" });
  const replaced = await findReplaced(network.rpc, wanted, head);
  const formers = formersOf(network);
  for (const id of ids) {
    const headReading = atHead.get(id);
    if (headReading === undefined) continue;
    const outcome = await mirrorChannel(context.ledger, {
      ...place,
      channelId: id,
      head: headReading,
      served: served.get(id),
      final: final.get(id),
      lease,
      replaces: replaced.get(id),
      maxLead: network.finalAfter,
    });
    outcomes.set(id, outcome);
    if (outcome.outcome === "lease_lost") break;
    if (served.has(id)) formers.served.delete(id);
    if (final.has(id)) formers.final.delete(id);
  }
  return outcomes;
}

/** Each channel at the depth that its balance asks for. */
async function readServed(
  escrow: EscrowContext,
  atHead: ReadonlyMap<Hex, ChannelReading>,
  head: BlockId,
): Promise<Map<Hex, ChannelReading>> {
  const byDepth = new Map<number, Map<Hex, ChannelReading>>();
  for (const [id, reading] of atHead) {
    const depth = escrow.settlement.network.serveAfter({ value: reading.balance });
    byDepth.set(depth, (byDepth.get(depth) ?? new Map()).set(id, reading));
  }
  const found = await Promise.all(
    [...byDepth].map(([depth, readings]) =>
      readBelow(escrow, readings, { head, depth, name: "served" }),
    ),
  );
  return new Map(found.flatMap((readings) => [...readings]));
}

/** Channels at a depth. A node may keep too few states for that: see `finalByHeads`. */
async function readBelow(
  { context: { clock }, settlement: { network }, place: { contract } }: EscrowContext,
  atHead: ReadonlyMap<Hex, ChannelReading>,
  { head, depth, name }: { head: BlockId; depth: number; name: Depth },
): Promise<ReadonlyMap<Hex, ChannelReading>> {
  if (depth === 0) return atHead;
  const height = head.number - depth;
  const block = height < 0 ? undefined : await readBlock(network.rpc, height);
  if (block === undefined) return new Map();
  const former = formersOf(network)[name];
  const ids = [...atHead.keys()];
  try {
    return await readChannels(network, { contract, ids, block });
  } catch (error) {
    if (!isStateMissing(error)) throw error;
    const readings = { atHead, head, now: clock.now() };
    return finalByHeads({ rpc: network.rpc, finalAfter: depth }, former, readings);
  }
}

/**
 * Mirrors above the head in whose place the chain has another block. One whose block cannot be read
 * is not among them.
 */
async function findReplaced(
  rpc: RpcRequester,
  wanted: readonly Wanted[],
  head: BlockId,
): Promise<Map<Hex, Hex>> {
  const above = wanted.flatMap(({ channelId, block }) =>
    block !== undefined && block.number > head.number ? [{ channelId, block }] : [],
  );
  const heights = above.map(({ block }) => block.number);
  const blocks = await readBlocks(rpc, heights);
  const replaced = new Map<Hex, Hex>();
  for (const { channelId, block } of above) {
    const now = blocks.get(block.number);
    if (now !== undefined && now.hash !== block.hash) replaced.set(channelId, block.hash);
  }
  return replaced;
}
