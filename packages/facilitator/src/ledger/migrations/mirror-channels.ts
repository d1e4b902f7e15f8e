import type { Dialect } from "@coinslot/storage";
import { type SqlBool, sql, type Transaction } from "kysely";

/**
 * The chain's side of payment channels: its mirror, claims, settles, and how far the contract's
 * events are known. The previous release goes on beside this step, and sells by no channel.
 */
export async function mirrorChannels<Schema>(
  { schema }: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  const key = ["network", "contract", "channel_id"] as const;
  await schema
    .createTable("channel_states")
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("contract", types.text, (column) => column.notNull())
    .addColumn("channel_id", types.text, (column) => column.notNull())
    .addColumn("balance", types.amount, (column) => column.notNull())
    .addColumn("claimed", types.amount, (column) => column.notNull())
    .addColumn("withdraw_amount", types.amount)
    .addColumn("withdraw_at", types.integer)
    .addColumn("refund_nonce", types.amount, (column) => column.notNull())
    .addColumn("block_number", types.integer, (column) => column.notNull())
    .addColumn("block_hash", types.text, (column) => column.notNull())
    .addColumn("final_balance", types.amount)
    .addColumn("final_claimed", types.amount)
    .addColumn("final_number", types.integer)
    .addColumn("final_hash", types.text)
    .addColumn("is_moving", types.integer, (column) => column.notNull())
    .addPrimaryKeyConstraint("channel_states_key", [...key])
    .execute();
  await schema
    .createIndex("channel_states_moving")
    .on("channel_states")
    .columns(["network", "contract", "channel_id"])
    .where(sql<SqlBool>`is_moving = 1`)
    .execute();
  await schema
    .createTable("channel_claims")
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("contract", types.text, (column) => column.notNull())
    .addColumn("channel_id", types.text, (column) => column.notNull())
    .addColumn("transaction_id", types.text, (column) => column.notNull())
    .addColumn("total_claimed", types.amount, (column) => column.notNull())
    .addColumn("ceiling", types.amount, (column) => column.notNull())
    .addColumn("signature", types.text, (column) => column.notNull())
    .addColumn("state", types.text, (column) => column.notNull())
    .addColumn("created_at", types.timestampMs, (column) => column.notNull())
    .addPrimaryKeyConstraint("channel_claims_key", [...key, "transaction_id"])
    .execute();
  await schema
    .createIndex("channel_claims_sent")
    .on("channel_claims")
    .column("network")
    .where(sql<SqlBool>`state = 'sent'`)
    .execute();
  await schema
    .createTable("channel_settles")
    .addColumn("transaction_id", types.text, (column) => column.primaryKey())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("contract", types.text, (column) => column.notNull())
    .addColumn("receiver", types.text, (column) => column.notNull())
    .addColumn("token", types.text, (column) => column.notNull())
    .addColumn("amount", types.amount, (column) => column.notNull())
    .addColumn("created_at", types.timestampMs, (column) => column.notNull())
    .execute();
  await schema
    .createIndex("channel_settles_receiver")
    .on("channel_settles")
    .columns(["network", "contract", "receiver", "token", "created_at"])
    .execute();
  await schema
    .createTable("channel_watches")
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("contract", types.text, (column) => column.notNull())
    .addColumn("block_number", types.integer, (column) => column.notNull())
    .addColumn("block_hash", types.text, (column) => column.notNull())
    .addColumn("block_time", types.integer, (column) => column.notNull())
    .addColumn("since_number", types.integer, (column) => column.notNull())
    .addColumn("seen_at", types.timestampMs, (column) => column.notNull())
    .addPrimaryKeyConstraint("channel_watches_key", ["network", "contract"])
    .execute();
}
