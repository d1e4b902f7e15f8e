import type { Dialect } from "@coinslot/storage";
import { type SqlBool, sql, type Transaction } from "kysely";

/**
 * Deposits in the gas budgets of their caller and of payers with code, and among the commitments of
 * their payer. Channels that owe, deposits that have ended, and the receivers of channels by an
 * index each.
 *
 * The previous release goes on beside this step. Deposits that it queues have no gas, and count in
 * no budget.
 */
export async function boundDeposits<Schema>(
  { schema }: Transaction<Schema>,
  { types, amount }: Dialect,
): Promise<void> {
  await schema.alterTable("channel_deposits").addColumn("caller", types.text).execute();
  await schema
    .alterTable("channel_deposits")
    .addColumn("gas", types.integer, (column) => column.notNull().defaultTo(sql.lit(0)))
    .execute();
  await schema
    .alterTable("channel_deposits")
    .addColumn("is_vouched", types.integer, (column) => column.notNull().defaultTo(sql.lit(0)))
    .execute();
  await schema.alterTable("channel_deposits").addColumn("spent_at", types.timestampMs).execute();
  await schema.alterTable("channel_deposits").addColumn("block_number", types.integer).execute();
  await schema
    .createIndex("channel_deposits_promised")
    .on("channel_deposits")
    .column("payer")
    .where(sql<SqlBool>`ended_at is null`)
    .execute();
  await schema
    .createIndex("channel_deposits_gas")
    .on("channel_deposits")
    .column("network")
    .where(sql<SqlBool>`spent_at is not null`)
    .execute();
  await schema
    .createIndex("channel_deposits_ended")
    .on("channel_deposits")
    .columns(["network", "ended_at"])
    .execute();
  await schema
    .createIndex("channels_owing")
    .on("channels")
    .columns(["network", "contract", "channel_id"])
    .where(sql<SqlBool>`lost > ${sql.lit(amount.encode(0n))}`)
    .execute();
  // The receiver first: PostgreSQL without statistics would read channels by their network through
  // it.
  await schema
    .createIndex("channel_terms_receivers")
    .on("channel_terms")
    .columns(["receiver", "token", "network", "contract"])
    .execute();
}
