import { compileOnce } from "../compile-once.ts";
import type { LedgerReads } from "../ledger-context.ts";
import { type Channel, type ChannelKey, channelColumns, toChannel } from "./channel.ts";
import { type ChannelState, toChannelState } from "./channel-state.ts";

const ofState = [
  ...(["balance", "claimed", "withdraw_amount", "withdraw_at", "refund_nonce"] as const),
  ...(["block_number", "block_hash", "final_balance", "final_claimed", "final_number"] as const),
  ...(["final_hash", "is_moving", "published"] as const),
] as const;

/** Two lookups by one key, in one statement: each request makes it. */
const select = compileOnce(
  (db, { network, contract, channelId }: ChannelKey) =>
    db
      .selectFrom("channels")
      .innerJoin("channel_states", (join) =>
        join
          .onRef("channel_states.network", "=", "channels.network")
          .onRef("channel_states.contract", "=", "channels.contract")
          .onRef("channel_states.channel_id", "=", "channels.channel_id"),
      )
      .select([...channelColumns, ...ofState])
      .where("channels.network", "=", network)
      .where("channels.contract", "=", contract)
      .where("channels.channel_id", "=", channelId),
  ({ network, contract, channelId }) => [network, contract, channelId],
);

/**
 * The channel's row with its mirror of the chain, of one moment; `undefined` where the ledger does
 * not know it, or has never read its state.
 */
export async function readMirrored(
  reads: LedgerReads,
  key: ChannelKey,
): Promise<{ channel: Channel; state: ChannelState } | undefined> {
  const [row] = await select(reads, key);
  if (row === undefined) return undefined;
  const { dialect } = reads;
  return { channel: toChannel(row, dialect), state: toChannelState(row, dialect) };
}
