import { compileOnce } from "../compile-once.ts";
import type { LedgerReads } from "../ledger-context.ts";
import { type Channel, type ChannelKey, toChannel } from "./channel.ts";
import { type ChannelState, toChannelState } from "./channel-state.ts";

const ofChannel = [
  ...(["channels.network", "channels.contract", "channels.channel_id", "charged"] as const),
  ...(["ceiling", "signature", "before_ceiling", "before_signature", "secure", "lost"] as const),
  ...(["refunding", "running_token", "running_owner", "last_id", "last_fingerprint"] as const),
  ...(["last_key_hash", "last_amount", "last_at", "last_delivered_at", "last_owner"] as const),
  "last_runs",
] as const;

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
      .select([...ofChannel, ...ofState])
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
