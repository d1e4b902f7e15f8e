import type { Hex, Network } from "@coinslot/protocol";
import { forProcess, type LedgerContext, type LedgerReads } from "../ledger-context.ts";
import { type Channel, type ChannelKey, toChannel } from "./channel.ts";

/**
 * Channels of a network with unclaimed money, by their ids. The number of others does not matter.
 *
 * @param options.after the last id of the page before
 */
export async function findDues(
  { db, dialect }: LedgerReads,
  options: { network: Network; after?: Hex | undefined; limit: number },
): Promise<(Channel & { since: number })[]> {
  const { network, after = "0x", limit } = options;
  const rows = await db
    .selectFrom("channel_dues")
    .innerJoin("channels", (join) =>
      join
        .onRef("channels.network", "=", "channel_dues.network")
        .onRef("channels.contract", "=", "channel_dues.contract")
        .onRef("channels.channel_id", "=", "channel_dues.channel_id"),
    )
    .selectAll("channels")
    .select("channel_dues.since")
    .where("channel_dues.network", "=", network)
    .where("channel_dues.channel_id", ">", after)
    .orderBy("channel_dues.channel_id")
    .limit(limit)
    .execute();
  return rows.map((row) => ({ ...toChannel(row, dialect), since: row.since }));
}

/**
 * Takes a channel off the dues, unless more was charged than the chain has finally paid.
 *
 * The racer is a charge. It holds the channel's row until its commit, and finds the due there, so
 * it writes none. Without the lock, this delete would miss that charge and take its due away: money
 * that no process claims. With it, this one waits and then sees the charge.
 *
 * @returns whether nothing is due any more
 */
export function dropDue(
  ledger: LedgerContext,
  { network, contract, channelId, claimed }: ChannelKey & { claimed: bigint },
): Promise<boolean> {
  const { dialect } = ledger;
  return ledger.write(async (transaction) => {
    const row = await transaction
      .selectFrom("channels")
      .select("charged")
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("channel_id", "=", channelId)
      .$call(dialect.forUpdate)
      .executeTakeFirst();
    if (row !== undefined && dialect.amount.decode(row.charged) > claimed) return false;
    await transaction
      .deleteFrom("channel_dues")
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("channel_id", "=", channelId)
      .execute();
    return true;
  }, forProcess);
}
