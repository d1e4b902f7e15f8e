import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import { hexOfBytes } from "../store/bytes.ts";
import { logsPerBlock } from "../store/position.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { findTokens } from "./describe-transfer.ts";
import { createMatching, createReceivers, toldOf } from "./tell-events.ts";
import { type Follower, readTold, readUnsent, type ToldRow } from "./told-transfers.ts";
import { findWatchers } from "./watched-addresses.ts";

/**
 * The stored transfers in the transactions of reverted ones, for the same receivers. These have no
 * event of them yet. A reindex finds such a transfer at another place than the event before has:
 * the number of its log, or the hash of its block, was false. Or the reindex before has missed it.
 */
export async function findUntold(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { chainId, followers }: { chainId: number; followers: readonly Follower[] },
): Promise<ToldRow[]> {
  const keyOf = (row: Pick<ToldRow, "token_id" | "transaction_hash">) =>
    `${row.token_id} ${hexOfBytes(row.transaction_hash)}`;
  const stored = [];
  for (const row of new Map(followers.map((each) => [keyOf(each), each])).values())
    stored.push(...(await readTransaction(transaction, chainId, row)));
  if (stored.length === 0) return [];
  const tokens = await findTokens(transaction, stored);
  const sides = stored.flatMap((row) => [row.from_address, row.to_address].map(hexOfBytes));
  const watchers = await findWatchers(transaction, dialect, sides);
  const unsent = createReceivers(await readUnsent(transaction, dialect, stored));
  const receiversOf = createMatching(watchers, followers, unsent);
  const placeOf = (row: ToldRow) => `${row.token_id} ${row.position} ${row.endpoint_id}`;
  const known = new Set((await readTold(transaction, dialect, stored)).map(placeOf));
  const receivers = new Set(followers.map((row) => `${keyOf(row)} ${row.endpoint_id}`));
  return stored.flatMap((row) => {
    const token = tokens.get(row.token_id);
    if (token === undefined) return [];
    return toldOf(row, { token, receiversOf, dialect }).filter(
      (each) => receivers.has(`${keyOf(each)} ${each.endpoint_id}`) && !known.has(placeOf(each)),
    );
  });
}

/** The transfers of a token in one transaction. */
function readTransaction(
  transaction: Transaction<IndexerSchema>,
  chainId: number,
  { token_id, transaction_hash: hash }: Follower,
) {
  return transaction
    .selectFrom("indexer_transfers as transfer")
    .innerJoin("indexer_blocks as block", (join) =>
      join
        .on("block.chain_id", "=", chainId)
        .on("block.number", "=", sql<number>`transfer.position / ${sql.lit(logsPerBlock)}`),
    )
    .where(sql<boolean>`substr(transfer.transaction_hash, 1, 8) = ${hash.subarray(0, 8)}`)
    .where("transfer.transaction_hash", "=", hash)
    .where("transfer.token_id", "=", token_id)
    .selectAll("transfer")
    .select(["block.hash as block_hash", "block.timestamp_ms"])
    .execute();
}
