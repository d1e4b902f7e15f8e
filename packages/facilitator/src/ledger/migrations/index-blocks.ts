import { createIndexStatement, type Dialect, type TableIndex } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";

/**
 * Payments and transactions that are not final, by their blocks. With the hash in them, blocks are
 * found without their rows. As they are here, they stay.
 */
export const blockIndexes: readonly (TableIndex & { replaces: string })[] = [
  {
    name: "payments_in_blocks",
    table: "payments",
    columns: ["network", "block_number", "block_hash"],
    where: "state = 'confirmed' and final_at is null",
    replaces: "payments_not_final",
  },
  {
    name: "transactions_in_blocks",
    table: "transactions",
    columns: ["network", "block_number", "block_hash"],
    where: "state = 'settled'",
    replaces: "transactions_settled",
  },
];

/**
 * The hashes of blocks in the indexes of what is not final.
 *
 * On PostgreSQL a large table would be locked while they are built: `startIndexBuilds` builds them
 * later, beside the traffic. An empty table has them at once. The statements of the previous
 * release find by them what they found by the old ones.
 */
export async function indexBlocks<Schema>(
  transaction: Transaction<Schema>,
  { engine }: Dialect,
): Promise<void> {
  if (engine === "postgres") {
    const { rows } = await sql`
      select 1 where exists (select from payments) or exists (select from transactions)
    `.execute(transaction);
    if (rows.length > 0) return;
  }
  for (const index of blockIndexes) {
    await sql.raw(createIndexStatement(index)).execute(transaction);
    await sql`drop index ${sql.table(index.replaces)}`.execute(transaction);
  }
}
