import type { Address } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Selectable, Transaction } from "kysely";
import type { LedgerSchema, PayersTable } from "../schema.ts";

/**
 * Locks the rows of these payers until the transaction ends, and reads them. Every caller locks in
 * the order of the addresses, on inserting as on reading. So no two can deadlock.
 */
export async function lockPayers(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  payers: readonly Address[];
  now: number;
}): Promise<Map<Address, Selectable<PayersTable>>> {
  const { transaction, dialect, now } = options;
  const payers = [...options.payers].sort();
  if (payers.length === 0) return new Map();
  await dialect.insertMany<LedgerSchema, "payers">(
    transaction,
    "payers",
    payers.map((payer) => ({ payer, releases: 0, window_started_at: now })),
    "ignore",
  );
  const rows = await transaction
    .selectFrom("payers")
    .select(["payer", "releases", "window_started_at"])
    .where("payer", "in", dialect.among(payers))
    .orderBy("payer")
    .$call(dialect.forUpdate)
    .execute();
  return new Map(rows.map((row) => [row.payer, row]));
}
