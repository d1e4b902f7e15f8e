import { stat } from "node:fs/promises";
import { chainIdOf, type Network } from "@coinslot/protocol";
import { createChainNode } from "../chain/chain-node.ts";
import { hasCode } from "../files/own-file.ts";
import { openChannelStore } from "./channel-store.ts";
import { type ChannelSummary, summarize } from "./manage-channels.ts";
import { readChannel } from "./read-channel.ts";

/** A channel of a file, and as the chain has it. */
export interface StoredChannel extends ChannelSummary {
  /** As the first node that answers has it; `undefined` without one. */
  onChain:
    | {
        balance: bigint;
        claimed: bigint;
        /** A withdrawal that has begun, and its end in unix seconds. */
        withdrawal: { amount: bigint; finalizeAfter: number } | undefined;
      }
    | undefined;
}

const timeoutMs = 10_000;

/**
 * Reads the payment channels of a file, without an account and without a change. An absent file has
 * none.
 *
 * @param options.id reads this channel alone
 * @param options.rpcUrls nodes by network; the channels of others are not looked up
 * @throws PaymentError `channel_file_corrupt` or `channel_file_unavailable`
 */
export async function readChannels(options: {
  file: string;
  id?: string | undefined;
  rpcUrls?: Readonly<Record<Network, readonly string[]>> | undefined;
}): Promise<StoredChannel[]> {
  const { file, id, rpcUrls = {} } = options;
  try {
    await stat(file);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
  }
  const store = await openChannelStore(file);
  try {
    const records = store
      .list()
      .filter((record) => id === undefined || record.id === id.toLowerCase());
    return await Promise.all(
      records.map(async (record): Promise<StoredChannel> => {
        const { network, config } = record;
        const urls = rpcUrls[network] ?? [];
        const nodes = urls.map((url) => createChainNode(url, chainIdOf(network), timeoutMs));
        const seen = await readChannel(nodes, record);
        const { balance = 0n, claimed = 0n, withdrawal } = seen ?? {};
        const finalizeAfter = (withdrawal?.initiatedAt ?? 0) + config.withdrawDelay;
        const running = withdrawal && { amount: withdrawal.amount, finalizeAfter };
        const onChain = seen && { balance, claimed, withdrawal: running };
        return { ...summarize(record), onChain };
      }),
    );
  } finally {
    store.close();
  }
}
