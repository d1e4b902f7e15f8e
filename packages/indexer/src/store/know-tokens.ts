import type { Database } from "@coinslot/storage";
import type { ChainConfiguration } from "../configuration.ts";
import { bytesOfHex, hexOfBytes } from "./bytes.ts";
import { addChain } from "./chain-row.ts";
import type { KnownToken } from "./known-token.ts";
import type { IndexerSchema } from "./schema.ts";

/**
 * Finds the configured tokens of a chain in the database. Adds those that are new, and the chain
 * itself.
 */
export async function knowTokens(
  database: Database<IndexerSchema>,
  { chainId, name, tokens }: ChainConfiguration,
): Promise<KnownToken[]> {
  await addChain(database, { chainId, name });
  await database.kysely
    .insertInto("indexer_tokens")
    .values(
      tokens.map((token) => ({
        chain_id: chainId,
        address: bytesOfHex(token.address),
        name: token.name,
        opens_at_zero: 0,
        revision: 0,
      })),
    )
    .onConflict((conflict) =>
      conflict
        .columns(["chain_id", "address"])
        .doUpdateSet((set) => ({ name: set.ref("excluded.name") })),
    )
    .execute();
  const rows = await database.kysely
    .selectFrom("indexer_tokens")
    .select(["id", "address"])
    .where("chain_id", "=", chainId)
    .execute();
  return tokens.flatMap(({ name: token, address, startBlock }) => {
    const row = rows.find((each) => hexOfBytes(each.address) === address);
    return row ? [{ blockchain: name, token, id: row.id, chainId, address, startBlock }] : [];
  });
}
