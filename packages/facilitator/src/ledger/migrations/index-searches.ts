import { createIndexStatement, type Dialect, type TableIndex } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";

/**
 * Archived payments by their nonce and by the hash of their transaction, and events by their
 * payment: for an operator's search. Only equal values are looked for. As they are here, they stay.
 */
export const searchIndexes: readonly TableIndex[] = [
  {
    name: "archived_payments_nonce",
    table: "archived_payments",
    columns: ["nonce"],
    using: "hash",
  },
  {
    name: "archived_payments_transaction",
    table: "archived_payments",
    columns: ["transaction_hash"],
    using: "hash",
    where: "transaction_hash is not null",
  },
  { name: "outbox_events_key", table: "outbox_events", columns: ["key"], using: "hash" },
];

/** Eight bytes of a hash are as good as all, and a fourth of them. */
const sqliteStatements = [
  "create index archived_payments_nonce on archived_payments (substr(nonce, 1, 8))",
  "create index archived_payments_transaction on archived_payments (substr(transaction_hash, 1, 8)) where transaction_hash is not null",
  "create index outbox_events_key on outbox_events (key)",
];

/**
 * Indexes of an operator's searches. On PostgreSQL a large table would be locked while they are
 * built: `startIndexBuilds` builds them later, beside the traffic. An empty table has them at once.
 * No statement of a payment's way reads by them.
 */
export async function indexSearches<Schema>(
  transaction: Transaction<Schema>,
  { engine }: Dialect,
): Promise<void> {
  if (engine === "sqlite") {
    for (const statement of sqliteStatements) await sql.raw(statement).execute(transaction);
    return;
  }
  for (const index of searchIndexes) {
    const { rows } = await sql`select 1 from ${sql.table(index.table)} limit 1`.execute(
      transaction,
    );
    if (rows.length === 0) await sql.raw(createIndexStatement(index)).execute(transaction);
  }
}
