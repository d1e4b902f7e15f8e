import type { Dialect, StoredAmount } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import type { TransferBatch } from "../transfer-log/transfer-batch.ts";
import { bytesOfHex, hexOfBytes } from "./bytes.ts";
import { forgetOpenings } from "./change-balances.ts";
import { announce } from "./events.ts";
import type { KnownToken } from "./known-token.ts";
import { LOGS_PER_BLOCK } from "./position.ts";
import { readStored } from "./read-stored.ts";
import type { IndexerSchema } from "./schema.ts";
import { wrapUint256 } from "./wrap-uint256.ts";

export interface Mend {
  chainId: number;
  tokens: readonly KnownToken[];
  /** The block as the chain has it. */
  block: { number: number; hash: string; timestampMs: number };
  /** Its transfers of these tokens. */
  truth: TransferBatch;
  /** Whether readers of events are told. */
  isAnnounced: boolean;
}

/**
 * Puts the transfers of a block in the place of those that are stored. The balances of their addresses are summed up
 * anew: whatever made the rows wrong may have left the balances right, or wrong in another way. That takes as long as
 * those addresses have transfers, and is rare.
 */
export async function mendBlock(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { chainId, tokens, block, truth, isAnnounced }: Mend,
): Promise<void> {
  const { number } = block;
  const range = { from: number, next: number + 1 };
  const before = await readStored(transaction, { chainId, tokens, range });
  const tokenIds = tokens.map(({ id }) => id);
  const oldBlock = await transaction
    .selectFrom("indexer_blocks")
    .select(["hash", "timestamp_ms"])
    .where("chain_id", "=", chainId)
    .where("number", "=", number)
    .executeTakeFirst();
  await transaction
    .deleteFrom("indexer_transfers")
    .where("token_id", "in", tokenIds)
    .where("position", ">=", number * LOGS_PER_BLOCK)
    .where("position", "<", (number + 1) * LOGS_PER_BLOCK)
    .execute();
  const hash = bytesOfHex(block.hash);
  const row = { chain_id: chainId, number, hash, timestamp_ms: block.timestampMs };
  await dialect.insertMany(transaction, "indexer_blocks", [row], {
    keys: ["chain_id", "number"],
    replace: ["hash", "timestamp_ms"],
  });
  await dialect.insertMany(transaction, "indexer_transfers", truth.rows);
  for (const token of tokens) {
    const rows = [...before.rows, ...truth.rows].filter(({ token_id }) => token_id === token.id);
    if (rows.length === 0) continue;
    const addresses = rows.flatMap((each) => [each.from_address, each.to_address].map(hexOfBytes));
    await sumBalances(transaction, dialect, { tokenId: token.id, addresses: new Set(addresses) });
    // What was there before the first block was found with the sums as they were.
    await forgetOpenings(transaction, token.id);
  }
  if (!isAnnounced) return;
  const old = { block_hash: oldBlock?.hash ?? hash, timestamp_ms: oldBlock?.timestamp_ms ?? 0 };
  await announce(transaction, dialect, [
    ...[...before.rows].reverse().map((each) => ({ ...each, kind: "retraction" as const, ...old })),
    ...truth.rows.map((each) => ({
      ...each,
      kind: "transfer" as const,
      block_hash: hash,
      timestamp_ms: block.timestampMs,
    })),
  ]);
}

/** Makes balances what their stored transfers add up to. */
async function sumBalances(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { tokenId, addresses }: { tokenId: number; addresses: ReadonlySet<string> },
): Promise<void> {
  const sumOf = async (side: "from_address" | "to_address", address: string) => {
    const { rows } = await sql<{ sum: StoredAmount }>`
      select ${dialect.amount.sum(sql.ref("amount"))} as sum from indexer_transfers
      where token_id = ${tokenId} and ${sql.ref(side)} = ${bytesOfHex(address)}
    `.execute(transaction);
    return rows[0] === undefined ? 0n : dialect.amount.decode(rows[0].sum);
  };
  for (const address of addresses) {
    const gain = (await sumOf("to_address", address)) - (await sumOf("from_address", address));
    const amount = dialect.amount.encode(wrapUint256(gain));
    const row = { token_id: tokenId, address: bytesOfHex(address), amount };
    await dialect.insertMany(transaction, "indexer_balances", [row], {
      keys: ["token_id", "address"],
      replace: ["amount"],
    });
  }
}
