import type { Dialect } from "@coinslot/storage";
import { type SqlBool, sql, type Transaction } from "kysely";

/**
 * Refunds of channels. The previous release goes on beside this step: it gives back nothing of a
 * channel, and charges none that is locked.
 */
export async function refundChannels<Schema>(
  { schema }: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  const key = ["network", "contract", "channel_id"] as const;
  await schema
    .createTable("channel_refunds")
    .addColumn("id", types.text, (column) => column.primaryKey())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("contract", types.text, (column) => column.notNull())
    .addColumn("channel_id", types.text, (column) => column.notNull())
    .addColumn("signer", types.text, (column) => column.notNull())
    .addColumn("ceiling", types.amount, (column) => column.notNull())
    .addColumn("asked", types.amount)
    .addColumn("since_number", types.integer, (column) => column.notNull())
    .addColumn("state", types.text, (column) => column.notNull())
    .addColumn("nonce", types.amount)
    .addColumn("amount", types.amount)
    .addColumn("transaction_id", types.text)
    .addColumn("hash", types.text)
    .addColumn("refunded", types.amount)
    .addColumn("reason", types.text)
    .addColumn("created_at", types.timestampMs, (column) => column.notNull())
    .addColumn("ended_at", types.timestampMs)
    .execute();
  await schema
    .createIndex("channel_refunds_open")
    .unique()
    .on("channel_refunds")
    .columns([...key])
    .where(sql<SqlBool>`ended_at is null`)
    .execute();
  await schema
    .createIndex("channel_refunds_channel")
    .on("channel_refunds")
    .columns([...key, "created_at"])
    .execute();
  await schema
    .createIndex("channel_refunds_signer")
    .on("channel_refunds")
    .columns(["signer", "created_at"])
    .execute();
  await schema
    .createIndex("channel_refunds_time")
    .on("channel_refunds")
    .columns(["network", "created_at"])
    .execute();
}
