import type { Dialect, StoredAmount } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import { hexOfBytes } from "./bytes.ts";
import type { IndexerSchema } from "./schema.ts";
import { wrapUint256 } from "./wrap-uint256.ts";

/** Gain of each address, modulo 2^256, keyed by its 40 hex digits. */
export type Gains = ReadonlyMap<string, bigint>;

/**
 * Adds gains to the balances of a token. No other process changes them: this transaction has the
 * writer lease.
 */
export async function addGains(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { tokenId, gains }: { tokenId: number; gains: Gains },
): Promise<void> {
  const rows = [...gains].flatMap(([address, gain]) =>
    gain === 0n
      ? []
      : {
          token_id: tokenId,
          address: Buffer.from(address, "hex"),
          amount: dialect.amount.encode(gain),
        },
  );
  await dialect.insertMany(transaction, "indexer_balances", rows, {
    keys: ["token_id", "address"],
    add: ["amount"],
  });
}

// One text per length of the list is prepared; PostgreSQL binds at most 65,535 values.
const addressesPerStatement = 500;

/**
 * Lowers openings after gains from below the former first indexed block: an address had less before
 * it by as much. A reader may be about to write an opening that was found with the old gains. The
 * revision shows it that the opening is outdated (optimistic concurrency).
 */
export async function lowerOpenings(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { tokenId, gains }: { tokenId: number; gains: Gains },
): Promise<void> {
  await countRevision(transaction, tokenId);
  const addresses = [...gains.keys()];
  for (let start = 0; start < addresses.length; start += addressesPerStatement) {
    const before = await readOpenings(transaction, dialect, {
      tokenId,
      addresses: addresses.slice(start, start + addressesPerStatement),
    });
    const rows = [...before].map(([address, opening]) => ({
      token_id: tokenId,
      address: Buffer.from(address, "hex"),
      amount: dialect.amount.encode(wrapUint256(opening - (gains.get(address) ?? 0n))),
    }));
    await dialect.insertMany(transaction, "indexer_openings", rows, {
      keys: ["token_id", "address"],
      replace: ["amount"],
    });
  }
}

/**
 * For replaced blocks that lie below an indexed one, and are not indexed: the chain has to be asked
 * again.
 */
export async function forgetOpenings(
  transaction: Transaction<IndexerSchema>,
  tokenId: number,
): Promise<void> {
  await countRevision(transaction, tokenId);
  await transaction.deleteFrom("indexer_openings").where("token_id", "=", tokenId).execute();
}

async function countRevision(
  transaction: Transaction<IndexerSchema>,
  tokenId: number,
): Promise<void> {
  await transaction
    .updateTable("indexer_tokens")
    .set((set) => ({ revision: set("revision", "+", 1) }))
    .where("id", "=", tokenId)
    .execute();
}

async function readOpenings(
  transaction: Transaction<IndexerSchema>,
  { amount }: Dialect,
  of: { tokenId: number; addresses: readonly string[] },
): Promise<ReadonlyMap<string, bigint>> {
  const addresses = sql.join(of.addresses.map((address) => Buffer.from(address, "hex")));
  // Handwritten SQL: with this many values a query builder takes longer than the database.
  const { rows } = await sql<{ address: Uint8Array; amount: StoredAmount }>`
    select address, amount from indexer_openings
    where token_id = ${of.tokenId} and address in (${addresses})
  `.execute(transaction);
  return new Map(rows.map((row) => [hexOfBytes(row.address).slice(2), amount.decode(row.amount)]));
}
