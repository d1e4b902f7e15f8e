import type { Dialect, OutboxContext } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import type { Address } from "viem";
import { bytesOfHex, hexOfBytes } from "../store/bytes.ts";
import type { IndexerSchema } from "../store/schema.ts";

/** Addresses that one receiver may watch. */
export const maxWatched = 100_000;

/** Addresses of one statement. */
const addressesAtOnce = 500;

type Writes = Pick<OutboxContext<IndexerSchema>, "write" | "dialect">;

/** Numbers of a change: addresses that are new, those that are gone, and all that are left. */
export interface WatchedChange {
  added: number;
  removed: number;
  watched: number;
}

/**
 * Removes addresses of a receiver, then adds others: all of it, or nothing. Events of new ones
 * begin with the next block. Transfers of removed ones whose inclusion was posted get their end,
 * too.
 *
 * @returns undefined, and nothing is changed, where there would be more than `maxWatched`
 */
export async function changeWatched(
  { write, dialect }: Writes,
  change: { endpoint: string; add?: readonly Address[]; remove?: readonly Address[] },
): Promise<WatchedChange | undefined> {
  const { endpoint, add = [], remove = [] } = change;
  class TooMany extends Error {}
  const changed = write(async (transaction) => {
    // Two callers could pass the bound together.
    await dialect.lockKey(transaction, `coinslot:indexer_watched:${endpoint}`);
    if (add.length > 0) await beginTelling(transaction);
    const removed = await removeWatched(transaction, endpoint, remove);
    const before = await countWatched(transaction, endpoint);
    const rows = [...new Set(add)].map((address) => ({
      address: bytesOfHex(address),
      endpoint_id: endpoint,
    }));
    await dialect.insertMany(transaction, "indexer_watched", rows, "ignore");
    const watched = await countWatched(transaction, endpoint);
    if (watched > maxWatched) throw new TooMany();
    return { added: watched - before, removed, watched };
  });
  return changed.catch((error: unknown) => {
    if (error instanceof TooMany) return undefined;
    throw error;
  });
}

/** Events of before the first watched address are not told. */
async function beginTelling(transaction: Transaction<IndexerSchema>): Promise<void> {
  await sql`
    update indexer_telling set last_event = coalesce((select max(id) from indexer_events), 0)
    where not exists (select 1 from indexer_watched) and not exists (select 1 from indexer_told)
      and not exists (select 1 from indexer_reverted)
  `.execute(transaction);
}

async function removeWatched(
  transaction: Transaction<IndexerSchema>,
  endpoint: string,
  addresses: readonly Address[],
): Promise<number> {
  let removed = 0;
  for (let start = 0; start < addresses.length; start += addressesAtOnce) {
    const { numDeletedRows } = await transaction
      .deleteFrom("indexer_watched")
      .where("endpoint_id", "=", endpoint)
      .where("address", "in", addresses.slice(start, start + addressesAtOnce).map(bytesOfHex))
      .executeTakeFirstOrThrow();
    removed += Number(numDeletedRows);
  }
  return removed;
}

export async function countWatched(
  db: OutboxContext<IndexerSchema>["db"],
  endpoint: string,
): Promise<number> {
  const { count } = await db
    .selectFrom("indexer_watched")
    .select(({ fn }) => fn.countAll<number>().as("count"))
    .where("endpoint_id", "=", endpoint)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** A page of the addresses of a receiver, in their order. */
export async function listWatched(
  { db }: Pick<OutboxContext<IndexerSchema>, "db">,
  page: { endpoint: string; after: Address | undefined; limit: number },
): Promise<Address[]> {
  const rows = await db
    .selectFrom("indexer_watched")
    .select("address")
    .where("endpoint_id", "=", page.endpoint)
    .where("address", ">", bytesOfHex(page.after ?? "0x"))
    .orderBy("address")
    .limit(page.limit)
    .execute();
  return rows.map(({ address }) => hexOfBytes(address));
}

/** Receivers by address, in lowercase, of those addresses that are watched. */
export type Watchers = ReadonlyMap<string, readonly string[]>;

/**
 * Finds who watches these addresses. It reads the index once for each of them, however many are
 * watched.
 */
export async function findWatchers(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  addresses: Iterable<string>,
): Promise<Watchers> {
  const watchers = new Map<string, string[]>();
  const wanted = [...new Set(addresses)];
  if (wanted.length === 0) return watchers;
  const records = dialect.records(
    "wanted",
    { hex: "text" },
    wanted.map((hex) => ({ hex })),
  );
  const address = dialect.fromHex(sql.ref("wanted.hex"));
  // The offset keeps PostgreSQL from reading the whole table for a join with the list.
  const { rows } =
    dialect.engine === "postgres"
      ? await sql<{ hex: string; endpoint_id: string }>`
          select wanted.hex, found.endpoint_id from ${records} cross join lateral (
            select endpoint_id from indexer_watched where address = ${address} offset 0
          ) as found
        `.execute(transaction)
      : await sql<{ hex: string; endpoint_id: string }>`
          select wanted.hex, found.endpoint_id from ${records}
          cross join indexer_watched as found where found.address = ${address}
        `.execute(transaction);
  for (const { hex, endpoint_id } of rows) {
    const endpoints = watchers.get(hex);
    if (endpoints === undefined) watchers.set(hex, [endpoint_id]);
    else endpoints.push(endpoint_id);
  }
  return watchers;
}
