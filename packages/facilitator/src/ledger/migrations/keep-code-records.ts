import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";

/** Payments whose records are kept, the newest: a step must not read a long history. */
const newest = 100_000;

/**
 * Records of payers with code, one row for each payer and network. The gas that a payment's
 * transaction has burnt.
 *
 * The previous release goes on beside this step. It reads records from the payments, and adds to
 * none of these rows. A burn that it records ends a record here as well.
 */
export async function keepCodeRecords<Schema>(
  transaction: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  const { schema } = transaction;
  await schema.alterTable("code_gas").addColumn("burnt", types.integer).execute();
  await schema
    .createTable("code_records")
    .addColumn("payer", types.text, (column) => column.notNull())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("counts_from", types.timestampMs, (column) => column.notNull())
    .addColumn("confirmed", types.integer, (column) => column.notNull())
    .addPrimaryKeyConstraint("code_records_key", ["payer", "network"])
    .execute();
  await sql`
    insert into code_records (payer, network, counts_from, confirmed)
    select recent.payer, recent.network, coalesce(max(refused_until), 0), count(*)
    from (select * from payments order by id desc limit ${sql.lit(newest)}) as recent
    left join code_payers on code_payers.payer = recent.payer
    left join transactions on transactions.id = recent.transaction_id
    where recent.state = 'confirmed' and is_alone = 1
      and coalesce(confirmed_at, 0) >= coalesce(refused_until, 0)
      and (gas_share is null or transactions.hash = recent.transaction_hash)
    group by recent.payer, recent.network
  `.execute(transaction);
}
