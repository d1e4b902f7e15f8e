import type { ChannelState, Hex } from "@coinslot/protocol";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import { readBlock } from "../watch/mirror-channels.ts";
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
 * The block that is deep enough for an outcome of this value; `undefined` where the node has none.
 *
 * @throws RpcError
 */
export async function readServed(
  { escrow: { settlement } }: HostedNetwork,
  value: bigint,
): Promise<BlockId | undefined> {
  const { network } = settlement;
  const head = await network.watcher.read(network.pollMs / 2);
  return readBlock(network.rpc, Math.max(0, Number(head.number) - network.serveAfter({ value })));
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
