import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";

/**
 * The contract that uses a nonce up, and the subject of the sale.
 *
 * The previous release goes on beside this step. Its rows have no authority, which means the asset.
 * With one scheme every authority is the asset, so the unique index on the asset still holds the
 * identity. A new index would lock a large table for longer than a heartbeat. The release that adds
 * a second authority builds it concurrently, before it drops the old one.
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
}
