import type { ChannelState, Hex } from "@coinslot/protocol";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import { readBlock } from "../watch/read-block.ts";
import { type BlockId, readChannels } from "../watch/read-channels.ts";
import type { HostedNetwork } from "./hosted-context.ts";

/**
 * The newest block, read now: a claim or a withdrawal counts at once.
 *
 * @throws RpcError
 */
export async function readHead({ escrow: { settlement } }: HostedNetwork): Promise<BlockId> {
  const { number, hash } = await settlement.network.watcher.read(0);
  return { number: Number(number), hash };
}

/**
 * The block that is deep enough for an outcome of this value, below a head: a recent one by
 * default. `undefined` where the node has none.
 *
 * @throws RpcError
 */
export async function readServed(
  hosted: HostedNetwork,
  value: bigint,
  head?: number,
): Promise<BlockId | undefined> {
  const { rpc, serveAfter } = hosted.escrow.settlement.network;
  const top = head ?? (await readRecentHead(hosted));
  return readBlock(rpc, Math.max(0, top - serveAfter({ value })));
}

/**
 * The height of the chain, as read within half a poll.
 *
 * @throws RpcError
 */
export async function readRecentHead({ escrow }: HostedNetwork): Promise<number> {
  const { watcher, pollMs } = escrow.settlement.network;
  return Number((await watcher.read(pollMs / 2)).number);
}

/**
 * Channels at one block, in the order of their ids.
 *
 * @throws RpcError, ZodError, ChannelReadError
 */
export async function readAll(
  { escrow: { settlement, place } }: HostedNetwork,
  ids: readonly Hex[],
  block: BlockId,
): Promise<ChannelReading[]> {
  const wanted = [...new Set(ids)];
  const found = await readChannels(settlement.network, {
    contract: place.contract,
    ids: wanted,
    block,
  });
  return ids.map((id) => {
    const reading = found.get(id);
    if (reading === undefined) throw new TypeError("A channel was not read");
    return reading;
  });
}

/** One channel at one block. */
export async function readOne(network: HostedNetwork, id: Hex, block: BlockId) {
  const [reading] = await readAll(network, [id], block);
  if (reading === undefined) throw new TypeError("A channel was not read");
  return reading;
}

/** Whether the withdrawal of a channel, once it ends, takes money that a row claims. */
export function takesOf(
  { balance, withdrawal }: ChannelReading,
  { totalClaimed }: { totalClaimed: bigint },
): boolean {
  return withdrawal !== undefined && balance - withdrawal.amount < totalClaimed;
}

/** The channel as the chain has it: what was charged, its seller knows. */
export function stateOf(channelId: Hex, reading: ChannelReading): ChannelState {
  const { balance, totalClaimed, withdrawal, refundNonce } = reading;
  const withdrawRequestedAt = withdrawal?.initiatedAt ?? 0;
  return { channelId, balance, totalClaimed, withdrawRequestedAt, refundNonce };
}
