import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";

/**
 * The contract that uses a nonce up, and the subject of the sale.
 *
 * The previous release goes on beside this step. Its rows have no authority, which means the asset.
 * So the new index holds them to the same identity as the old one did, and has the same first
 * columns.
 */
export async function recordWhatWasSold<Schema>(
  transaction: Transaction<Schema>,
  { types, autoIncrement }: Dialect,
): Promise<void> {
  const { schema } = transaction;
  await schema
    .createTable("sold_names")
    .addColumn("id", types.integer, autoIncrement)
    .addColumn("name", types.text, (column) => column.notNull().unique())
    .execute();
  const columns = {
    authority: types.text,
    wire: types.text,
    route_id: types.integer,
    resource_id: types.integer,
    pay_to_id: types.integer,
    gas_share: types.integer,
  };
  for (const [name, type] of Object.entries(columns)) {
    await schema.alterTable("payments").addColumn(name, type).execute();
  }
  await schema
    .alterTable("payments")
    .addColumn("scheme", types.text, (column) => column.notNull().defaultTo("eip3009"))
    .execute();
  await schema.dropIndex("payments_identity").execute();
  await schema
    .createIndex("payments_identity")
    .on("payments")
    .columns(["nonce", "payer"])
    .expression(sql`coalesce(authority, asset)`)
    .column("network")
    .unique()
    .execute();
}
