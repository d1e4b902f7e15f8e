import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";

/** The relayers whose keys a process has. The previous release writes none, and holds leases. */
export async function nameRelayers<Schema>(
  transaction: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  await transaction.schema.alterTable("processes").addColumn("relayers", types.text).execute();
}
