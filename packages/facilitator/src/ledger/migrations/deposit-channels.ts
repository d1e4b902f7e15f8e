import type { Dialect } from "@coinslot/storage";
import { type SqlBool, sql, type Transaction } from "kysely";

/**
 * Deposits into channels that this ledger's relayers send. The previous release goes on beside this
 * step: it sends none, and sees the money of those of others by its watcher.
 */
export async function depositChannels<Schema>(
  { schema }: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  await schema
    .createTable("channel_deposits")
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("token", types.text, (column) => column.notNull())
    .addColumn("payer", types.text, (column) => column.notNull())
    .addColumn("nonce", types.text, (column) => column.notNull())
    .addColumn("contract", types.text, (column) => column.notNull())
    .addColumn("channel_id", types.text, (column) => column.notNull())
    .addColumn("signer", types.text, (column) => column.notNull())
    .addColumn("amount", types.amount, (column) => column.notNull())
    .addColumn("valid_before", types.amount, (column) => column.notNull())
    .addColumn("has_code", types.integer, (column) => column.notNull())
    .addColumn("data", types.text)
    .addColumn("since_number", types.integer, (column) => column.notNull())
    .addColumn("state", types.text, (column) => column.notNull())
    .addColumn("attempts", types.integer, (column) => column.notNull())
    .addColumn("transaction_id", types.text)
    .addColumn("hash", types.text)
    .addColumn("reason", types.text)
    .addColumn("created_at", types.timestampMs, (column) => column.notNull())
    .addColumn("ended_at", types.timestampMs)
    .addPrimaryKeyConstraint("channel_deposits_key", ["network", "token", "payer", "nonce"])
    .execute();
  await schema
    .createIndex("channel_deposits_pending")
    .unique()
    .on("channel_deposits")
    .columns(["network", "contract", "channel_id"])
    .where(sql<SqlBool>`state in ('queued', 'sent')`)
    .execute();
  await schema
    .createIndex("channel_deposits_open")
    .on("channel_deposits")
    .columns(["network", "contract", "created_at"])
    .where(sql<SqlBool>`ended_at is null`)
    .execute();
  await schema
    .createIndex("channel_deposits_signer")
    .on("channel_deposits")
    .columns(["signer", "created_at"])
    .execute();
  await schema
    .createIndex("channel_deposits_payer")
    .on("channel_deposits")
    .columns(["payer", "created_at"])
    .execute();
  await schema
    .createIndex("channel_deposits_code")
    .on("channel_deposits")
    .columns(["network", "created_at"])
    .where(sql<SqlBool>`has_code = 1`)
    .execute();
}
