import type { Hex, Network } from "@coinslot/protocol";
import { createWriter, type Database } from "@coinslot/storage";
import type { LedgerSchema } from "../schema.ts";

/** Rows of these belong to one chain: a relayer's next nonce is counted from its transactions. */
const used = ["payments", "transactions", "archived_payments"] as const;

/**
 * Keeps the hash of a network's first block. It is kept once; a ledger without payments and
 * transactions on the network takes another one instead. None is kept where endpoints differ.
 *
 * @param hashes as endpoints show it, each once
 * @returns the hash of the chain that the ledger's payments are on; `undefined` where it is none
 * of theirs yet, and they differ
 */
export function keepGenesis(
  database: Database<LedgerSchema>,
  { network, hashes }: { network: Network; hashes: readonly Hex[] },
): Promise<Hex | undefined> {
  const [first, ...others] = hashes;
  const agreed = others.length === 0 ? first : undefined;
  return createWriter(database).write(async (transaction) => {
    if (agreed !== undefined) {
      await transaction
        .insertInto("chains")
        .values({ network, genesis_hash: agreed })
        .onConflict((conflict) => conflict.column("network").doNothing())
        .execute();
    }
    const row = await transaction
      .selectFrom("chains")
      .select("genesis_hash")
      .where("network", "=", network)
      .executeTakeFirst();
    const kept = row?.genesis_hash;
    if (kept === undefined || hashes.includes(kept)) return kept;
    for (const table of used) {
      const found = await transaction
        .selectFrom(table)
        .select("id")
        .where("network", "=", network)
        .limit(1)
        .executeTakeFirst();
      if (found !== undefined) return kept;
    }
    if (agreed === undefined) return undefined;
    await transaction
      .updateTable("chains")
      .set({ genesis_hash: agreed })
      .where("network", "=", network)
      .execute();
    return agreed;
  });
}
