import { setImmediate } from "node:timers/promises";
import type { Database, Dialect, StoredAmount } from "@coinslot/storage";
import { type Kysely, sql, type Transaction } from "kysely";
import { type Hex, zeroAddress } from "viem";
import type { TransferInsert } from "../transfer-log/transfer-batch.ts";
import { bytesOfHex, hexOfBytes } from "./bytes.ts";
import { forgetOpenings } from "./change-balances.ts";
import { type BlockRange, readCoverage } from "./coverage.ts";
import type { KnownToken } from "./known-token.ts";
import { logsPerBlock } from "./position.ts";
import type { IndexerSchema } from "./schema.ts";
import { wrapUint256 } from "./wrap-uint256.ts";

/** Gains of addresses by their stored transfers: by the token's id, then the address. */
export type BalanceSums = ReadonlyMap<number, Map<Hex, bigint>>;

/** Sums of the transfers below a block, and the state by which to check whether they still hold. */
export interface SumsBelow {
  below: number;
  sums: BalanceSums;
  /** For each token: its revision, and its indexed ranges below the block. */
  state: string;
}

/** Rows summed up in one statement. */
const rowsAtOnce = 20_000;

/**
 * Sums up the transfers of addresses below a block, all of which is final. Its time grows with
 * their transfers. So it runs page after page and outside of a transaction, and the writer goes on
 * beside it. The zero address is left out, whose balance is the token's own answer.
 */
export async function sumBelow(
  database: Database<IndexerSchema>,
  {
    tokens,
    rows,
    below,
    signal,
  }: {
    tokens: readonly KnownToken[];
    /** The transfers whose addresses are summed up. */
    rows: readonly TransferInsert[];
    below: number;
    signal: AbortSignal;
  },
): Promise<SumsBelow> {
  const { kysely, dialect } = database;
  const state = await readState(kysely, { tokens, below });
  const sums = new Map<number, Map<Hex, bigint>>();
  const range = { from: 0, next: below };
  for (const { id } of tokens) {
    const ofToken = new Map<Hex, bigint>();
    for (const address of addressesOf(rows, id)) {
      const question = { tokenId: id, address, range, signal };
      ofToken.set(address, await sumOf(kysely, dialect, question));
    }
    sums.set(id, ofToken);
  }
  return { below, sums, state };
}

/** Returns whether nothing has changed below the block since. */
export async function doSumsHold(
  transaction: Transaction<IndexerSchema>,
  { below, state }: SumsBelow,
  tokens: readonly KnownToken[],
): Promise<boolean> {
  return (await readState(transaction, { tokens, below })) === state;
}

/** Sets balances to the sums plus the transfers that were stored above them meanwhile. */
export async function writeSums(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { below, sums, signal }: SumsBelow & { signal: AbortSignal },
): Promise<void> {
  const range = { from: below, next: Math.floor(Number.MAX_SAFE_INTEGER / logsPerBlock) };
  for (const [tokenId, ofToken] of sums) {
    if (ofToken.size === 0) continue;
    const rows = [];
    for (const [address, sum] of ofToken) {
      const above = await sumOf(transaction, dialect, { tokenId, address, range, signal });
      const amount = dialect.amount.encode(wrapUint256(sum + above));
      rows.push({ token_id: tokenId, address: bytesOfHex(address), amount });
    }
    await dialect.insertMany(transaction, "indexer_balances", rows, {
      keys: ["token_id", "address"],
      replace: ["amount"],
    });
    // Openings before the first block were found with the old sums.
    await forgetOpenings(transaction, tokenId);
  }
}

function addressesOf(rows: readonly TransferInsert[], tokenId: number): Set<Hex> {
  const addresses = new Set(
    rows
      .filter(({ token_id }) => token_id === tokenId)
      .flatMap((row) => [row.from_address, row.to_address].map(hexOfBytes)),
  );
  addresses.delete(zeroAddress);
  return addresses;
}

async function readState(
  kysely: Kysely<IndexerSchema>,
  { tokens, below }: { tokens: readonly KnownToken[]; below: number },
): Promise<string> {
  const ids = tokens.map(({ id }) => id);
  const revisions = await kysely
    .selectFrom("indexer_tokens")
    .select(["id", "revision"])
    .where("id", "in", ids)
    .orderBy("id")
    .execute();
  const coverage = await readCoverage(kysely, tokens);
  const clip = ({ from, next }: BlockRange) => [from, Math.min(next, below)];
  const ranges = ids.map((id) =>
    (coverage.get(id) ?? []).filter(({ from }) => from < below).map(clip),
  );
  return JSON.stringify([revisions, ranges]);
}

async function sumOf(
  kysely: Kysely<IndexerSchema>,
  dialect: Dialect,
  question: { tokenId: number; address: Hex; range: BlockRange; signal: AbortSignal },
): Promise<bigint> {
  const came = await sumSide(kysely, dialect, { ...question, side: "to_address" });
  return came - (await sumSide(kysely, dialect, { ...question, side: "from_address" }));
}

/** Page after page of the index by address. */
async function sumSide(
  kysely: Kysely<IndexerSchema>,
  dialect: Dialect,
  {
    tokenId,
    side,
    address,
    range,
    signal,
  }: {
    tokenId: number;
    side: "from_address" | "to_address";
    address: Hex;
    range: BlockRange;
    signal: AbortSignal;
  },
): Promise<bigint> {
  const bytes = bytesOfHex(address);
  const end = range.next * logsPerBlock;
  let from = range.from * logsPerBlock;
  let total = 0n;
  for (;;) {
    signal.throwIfAborted();
    const { rows } = await sql<{ sum: StoredAmount; count: number; last: number | null }>`
      select ${dialect.amount.sum(sql.ref("amount"))} as sum, count(*) as count, max(position) as last
      from (
        select amount, position from indexer_transfers
        where token_id = ${tokenId} and ${sql.ref(side)} = ${bytes}
        and position >= ${from} and position < ${end}
        order by position limit ${sql.lit(rowsAtOnce)}
      ) as page
    `.execute(kysely);
    const [page] = rows;
    if (page === undefined || page.last === null) return total;
    total += dialect.amount.decode(page.sum);
    if (Number(page.count) < rowsAtOnce) return total;
    from = page.last + 1;
    // SQLite answers on this very thread: yield to other work in between.
    await setImmediate();
  }
}
