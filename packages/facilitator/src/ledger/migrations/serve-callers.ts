import type { Dialect } from "@coinslot/storage";
import { type SqlBool, sql, type Transaction } from "kysely";

/**
 * Calls of the escrow that callers of a hosted facilitator ask for, and the gas of them. The
 * previous release goes on beside this step: it serves no channels to callers.
 */
export async function serveCallers<Schema>(
  { schema }: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  await schema
    .createTable("caller_calls")
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("contract", types.text, (column) => column.notNull())
    .addColumn("id", types.text, (column) => column.notNull())
    .addColumn("caller", types.text, (column) => column.notNull())
    .addColumn("kind", types.text, (column) => column.notNull())
    .addColumn("subject", types.text, (column) => column.notNull())
    .addColumn("state", types.text, (column) => column.notNull())
    .addColumn("transaction_id", types.text, (column) => column.notNull())
    .addColumn("hash", types.text)
    .addColumn("amount", types.amount)
    .addColumn("left_out", types.text)
    .addColumn("created_at", types.timestampMs, (column) => column.notNull())
    .addColumn("ended_at", types.timestampMs)
    .addPrimaryKeyConstraint("caller_calls_key", ["network", "contract", "id"])
    .execute();
  await schema
    .createIndex("caller_calls_sent")
    .unique()
    .on("caller_calls")
    .columns(["network", "contract", "subject"])
    .where(sql<SqlBool>`state = 'sent'`)
    .execute();
  await schema
    .createIndex("caller_calls_subject")
    .on("caller_calls")
    .columns(["network", "contract", "subject", "created_at"])
    .execute();
  await schema
    .createTable("caller_gas")
    .addColumn("id", types.text, (column) => column.notNull())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("caller", types.text, (column) => column.notNull())
    .addColumn("gas", types.integer, (column) => column.notNull())
    .addColumn("created_at", types.timestampMs, (column) => column.notNull())
    .addPrimaryKeyConstraint("caller_gas_key", ["id"])
    .execute();
  await schema
    .createIndex("caller_gas_recent")
    .on("caller_gas")
    .columns(["network", "caller", "created_at"])
    .execute();
}
