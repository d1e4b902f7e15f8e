import type { Dialect } from "@coinslot/storage";
import { type Selectable, sql, type Transaction } from "kysely";
import * as z from "zod";
import { hexOfBytes } from "../store/bytes.ts";
import type { IndexerSchema } from "../store/schema.ts";

/** A transfer that a receiver knows of. */
export type ToldRow = Selectable<IndexerSchema["indexer_told"]>;

type ToldId = Pick<ToldRow, "token_id" | "position" | "endpoint_id">;

/** A receiver that knows of transfers of an address, in lowercase, in a transaction. */
export type Follower = Omit<Selectable<IndexerSchema["indexer_reverted"]>, "reverted_at_ms">;

const addressesSchema = z.object({ addresses: z.array(z.string()) });

/** The receivers of told transfers, by the addresses that they watched. */
export function followersOf(rows: readonly ToldRow[]): Follower[] {
  return rows.flatMap(({ token_id, transaction_hash, endpoint_id, payload }) => {
    const { addresses } = addressesSchema.parse(JSON.parse(payload));
    return addresses.map((address) => ({ token_id, transaction_hash, endpoint_id, address }));
  });
}

/** The last events of the transfers at these places, to any receiver. */
export async function readTold(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  places: readonly { token_id: number; position: number }[],
): Promise<ToldRow[]> {
  const distinct = new Map(
    places.map(({ token_id, position }) => [`${token_id} ${position}`, { token_id, position }]),
  );
  const wanted = dialect.records("wanted", { token_id: "integer", position: "integer" }, [
    ...distinct.values(),
  ]);
  const { rows } =
    dialect.engine === "postgres"
      ? await sql<ToldRow>`
          select told.* from ${wanted} cross join lateral (
            select * from indexer_told as found
            where found.token_id = wanted.token_id and found.position = wanted.position offset 0
          ) as told
        `.execute(transaction)
      : await sql<ToldRow>`
          select told.* from ${wanted} cross join indexer_told as told
          where told.token_id = wanted.token_id and told.position = wanted.position
        `.execute(transaction);
  return rows;
}

export async function insertTold(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  rows: readonly ToldRow[],
): Promise<void> {
  if (rows.length > 0) await dialect.insertMany(transaction, "indexer_told", rows);
}

/** Forgets what was told of transfers that are gone. */
export async function deleteTold(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  rows: readonly ToldId[],
): Promise<void> {
  if (rows.length === 0) return;
  await sql`
    delete from indexer_told where (token_id, position, endpoint_id) in (
      select token_id, position, endpoint_id from ${recordsOf(dialect, rows)}
    )
  `.execute(transaction);
}

type Transactions = readonly { token_id: number; transaction_hash: Uint8Array }[];

/** The receivers that were told of transfers in these transactions, and of their retraction. */
export function readReverted(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  rows: Transactions,
): Promise<Follower[]> {
  return readReceivers(transaction, dialect, { table: "indexer_reverted", rows });
}

/** The receivers that were not sent transfers in these transactions before their retraction. */
export function readUnsent(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  rows: Transactions,
): Promise<Follower[]> {
  return readReceivers(transaction, dialect, { table: "indexer_unsent", rows });
}

/** Tables of the receivers of retracted transfers. */
type ReceiversTable = "indexer_reverted" | "indexer_unsent";

async function readReceivers(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { table, rows }: { table: ReceiversTable; rows: Transactions },
): Promise<Follower[]> {
  if (rows.length === 0 || !(await isAny(transaction, table))) return [];
  const distinct = new Map(
    rows.map(({ token_id, transaction_hash }) => {
      const hash = hexOfBytes(transaction_hash);
      return [`${token_id} ${hash}`, { token_id, hash }];
    }),
  );
  const wanted = dialect.records("wanted", { token_id: "integer", hash: "text" }, [
    ...distinct.values(),
  ]);
  const hash = dialect.fromHex(sql.ref("wanted.hash"));
  const { rows: found } =
    dialect.engine === "postgres"
      ? await sql<Follower>`
          select receiver.* from ${wanted} cross join lateral (
            select token_id, transaction_hash, endpoint_id, address from ${sql.table(table)} as found
            where found.token_id = wanted.token_id and found.transaction_hash = ${hash} offset 0
          ) as receiver
        `.execute(transaction)
      : await sql<Follower>`
          select receiver.token_id, receiver.transaction_hash, receiver.endpoint_id,
            receiver.address
          from ${wanted} cross join ${sql.table(table)} as receiver
          where receiver.token_id = wanted.token_id and receiver.transaction_hash = ${hash}
        `.execute(transaction);
  return found;
}

export function isAnyReverted(transaction: Transaction<IndexerSchema>): Promise<boolean> {
  return isAny(transaction, "indexer_reverted");
}

async function isAny(
  transaction: Transaction<IndexerSchema>,
  table: ReceiversTable,
): Promise<boolean> {
  const any = await transaction
    .selectFrom(table)
    .select("token_id")
    .limit(sql.lit(1))
    .executeTakeFirst();
  return any !== undefined;
}

/** Records the receivers of reverted transfers, to tell them where these are included again. */
export async function insertReverted(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  rows: readonly ToldRow[],
): Promise<void> {
  await insertReceivers(transaction, dialect, "indexer_reverted", followersOf(rows));
}

/** Records receivers that were not sent a retracted transfer, to leave them out later, too. */
export async function insertUnsent(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  receivers: readonly Follower[],
): Promise<void> {
  await insertReceivers(transaction, dialect, "indexer_unsent", receivers);
}

async function insertReceivers(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  table: ReceiversTable,
  receivers: readonly Follower[],
): Promise<void> {
  if (receivers.length === 0) return;
  const distinct = new Map(
    receivers.map((row) => [
      `${row.token_id} ${hexOfBytes(row.transaction_hash)} ${row.endpoint_id} ${row.address}`,
      row,
    ]),
  );
  const {
    rows: [time],
  } = await sql<{ now: number }>`select ${dialect.nowMs()} as now`.execute(transaction);
  if (time === undefined) throw new Error("The database has returned no time");
  const reverted_at_ms = time.now;
  await dialect.insertMany(
    transaction,
    table,
    [...distinct.values()].map((row) => ({ ...row, reverted_at_ms })),
    {
      keys: ["token_id", "transaction_hash", "endpoint_id", "address"],
      replace: ["reverted_at_ms"],
    },
  );
}

/** Records that receivers know of the finality of transfers. */
export async function finaliseTold(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  rows: readonly ToldId[],
): Promise<void> {
  if (rows.length === 0) return;
  await sql`
    update indexer_told set final_at_ms = ${dialect.nowMs()}
    where (token_id, position, endpoint_id) in (
      select token_id, position, endpoint_id from ${recordsOf(dialect, rows)}
    )
  `.execute(transaction);
}

/** Forgets that transfers were told as final. */
export async function openTold(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  rows: readonly ToldId[],
): Promise<void> {
  if (rows.length === 0) return;
  await sql`
    update indexer_told set final_at_ms = null where (token_id, position, endpoint_id) in (
      select token_id, position, endpoint_id from ${recordsOf(dialect, rows)}
    )
  `.execute(transaction);
}

function recordsOf(dialect: Dialect, rows: readonly ToldId[]) {
  return dialect.records(
    "these",
    { token_id: "integer", position: "integer", endpoint_id: "text" },
    rows.map(({ token_id, position, endpoint_id }) => ({ token_id, position, endpoint_id })),
  );
}

/**
 * Forgets transfers that were told as final long ago: one step. Where another one of the
 * transaction was reverted, they stay as long as its receivers: else they would be included again.
 *
 * @returns whether there may be more
 */
export async function forgetFinal(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { keptMs, limit }: { keptMs: number; limit: number },
): Promise<boolean> {
  const { rows } = await sql<ToldId>`
    select token_id, position, endpoint_id from indexer_told
    where final_at_ms < ${dialect.nowMs()} - ${sql.lit(keptMs)}
      and not exists (
        select 1 from indexer_reverted as reverted where reverted.token_id = indexer_told.token_id
          and reverted.transaction_hash = indexer_told.transaction_hash
      )
    order by final_at_ms limit ${sql.lit(limit)}
  `.execute(transaction);
  await deleteTold(transaction, dialect, rows);
  return rows.length >= limit;
}

interface ForgetBounds {
  keptMs: number;
  limit: number;
}

/**
 * Deletes the receivers of transfers that were reverted long ago: one step.
 *
 * @returns whether there may be more
 */
export function forgetReverted(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  bounds: ForgetBounds,
): Promise<boolean> {
  return forgetReceivers(transaction, dialect, "indexer_reverted", bounds);
}

/** As `forgetReverted`, for transfers that were not sent. */
export function forgetUnsent(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  bounds: ForgetBounds,
): Promise<boolean> {
  return forgetReceivers(transaction, dialect, "indexer_unsent", bounds);
}

async function forgetReceivers(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  table: ReceiversTable,
  { keptMs, limit }: ForgetBounds,
): Promise<boolean> {
  const { rows } = await sql`
    delete from ${sql.table(table)} where (token_id, transaction_hash, endpoint_id, address) in (
      select token_id, transaction_hash, endpoint_id, address from ${sql.table(table)}
      where reverted_at_ms < ${dialect.nowMs()} - ${sql.lit(keptMs)}
      order by reverted_at_ms limit ${sql.lit(limit)}
    ) returning token_id
  `.execute(transaction);
  return rows.length >= limit;
}
