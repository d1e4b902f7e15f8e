import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";

const key = ["network", "contract", "channel_id"] as const;

/**
 * Payment channels: what was charged on each, their terms, and those with unclaimed money. The
 * previous release goes on beside this step, and sells by no channel.
 */
export async function createChannels<Schema>(
  { schema }: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  await schema
    .createTable("channels")
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("contract", types.text, (column) => column.notNull())
    .addColumn("channel_id", types.text, (column) => column.notNull())
    .addColumn("charged", types.amount, (column) => column.notNull())
    .addColumn("ceiling", types.amount)
    .addColumn("signature", types.text)
    .addColumn("secure", types.amount, (column) => column.notNull())
    .addColumn("lost", types.amount, (column) => column.notNull())
    .addColumn("refunding", types.integer, (column) => column.notNull())
    .addColumn("running_token", types.text)
    .addColumn("running_owner", types.text)
    .addColumn("last_id", types.text)
    .addColumn("last_fingerprint", types.text)
    .addColumn("last_key_hash", types.text)
    .addColumn("last_amount", types.amount)
    .addColumn("last_at", types.timestampMs)
    .addColumn("last_delivered_at", types.timestampMs)
    .addPrimaryKeyConstraint("channels_key", [...key])
    .execute();
  await schema
    .createTable("channel_terms")
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("contract", types.text, (column) => column.notNull())
    .addColumn("channel_id", types.text, (column) => column.notNull())
    .addColumn("payer", types.text, (column) => column.notNull())
    .addColumn("payer_authorizer", types.text, (column) => column.notNull())
    .addColumn("receiver", types.text, (column) => column.notNull())
    .addColumn("receiver_authorizer", types.text, (column) => column.notNull())
    .addColumn("token", types.text, (column) => column.notNull())
    .addColumn("withdraw_delay", types.integer, (column) => column.notNull())
    .addColumn("salt", types.text, (column) => column.notNull())
    .addColumn("created_at", types.timestampMs, (column) => column.notNull())
    .addPrimaryKeyConstraint("channel_terms_key", [...key])
    .execute();
  await schema
    .createTable("channel_dues")
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("contract", types.text, (column) => column.notNull())
    .addColumn("channel_id", types.text, (column) => column.notNull())
    .addColumn("since", types.timestampMs, (column) => column.notNull())
    .addPrimaryKeyConstraint("channel_dues_key", [...key])
    .execute();
}
