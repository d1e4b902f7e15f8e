import type { Hex, Network } from "@coinslot/protocol";
import { createWriter, type Database } from "@coinslot/storage";
import type { LedgerSchema } from "../schema.ts";

/** Rows of these belong to one chain: a relayer's next nonce is counted from its transactions. */
const used = ["payments", "transactions", "archived_payments"] as const;

/**
 * Keeps the hash of a network's first block. It is kept once; a ledger without payments and
 * transactions on the network takes another one instead.
 *
 * @returns the hash of the chain that the ledger's payments are on
 */
export function keepGenesis(
  database: Database<LedgerSchema>,
  { network, hash }: { network: Network; hash: Hex },
): Promise<Hex> {
  return createWriter(database).write(async (transaction) => {
    await transaction
      .insertInto("chains")
      .values({ network, genesis_hash: hash })
      .onConflict((conflict) => conflict.column("network").doNothing())
      .execute();
    const { genesis_hash: kept } = await transaction
      .selectFrom("chains")
      .select("genesis_hash")
      .where("network", "=", network)
      .executeTakeFirstOrThrow();
    if (kept === hash) return kept;
    for (const table of used) {
      const row = await transaction
        .selectFrom(table)
        .select("id")
        .where("network", "=", network)
        .limit(1)
        .executeTakeFirst();
      if (row !== undefined) return kept;
    }
    await transaction
      .updateTable("chains")
      .set({ genesis_hash: hash })
      .where("network", "=", network)
      .execute();
    return hash;
  });
}
