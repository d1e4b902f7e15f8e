import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";

/**
 * The process that holds a channel's last answer, the runs of its handler, and answers kept under a
 * buyer's key. The previous release goes on beside this step, and sells by no channel.
 */
export async function resumeCharges<Schema>(
  { schema }: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  await schema.alterTable("channels").addColumn("last_owner", types.text).execute();
  await schema
    .alterTable("channels")
    .addColumn("last_runs", types.integer, (column) => column.notNull().defaultTo(0))
    .execute();
  await schema
    .createTable("channel_answers")
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("contract", types.text, (column) => column.notNull())
    .addColumn("channel_id", types.text, (column) => column.notNull())
    .addColumn("charge_id", types.text, (column) => column.notNull())
    .addColumn("sealed", types.bytes, (column) => column.notNull())
    .addColumn("expires_at", types.timestampMs, (column) => column.notNull())
    .addPrimaryKeyConstraint("channel_answers_key", ["network", "contract", "channel_id"])
    .execute();
  await schema
    .createIndex("channel_answers_expiry")
    .on("channel_answers")
    .column("expires_at")
    .execute();
}
