import type { Dialect } from "@coinslot/storage";
import { type Selectable, sql, type Transaction } from "kysely";
import type { IndexerSchema } from "../store/schema.ts";

/** A transfer that a receiver knows of. */
export type ToldRow = Selectable<IndexerSchema["indexer_told"]>;

type ToldId = Pick<ToldRow, "token_id" | "position" | "endpoint_id">;

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
 * Forgets transfers that were told as final long ago: one step.
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
    where final_at_ms < ${dialect.nowMs()} - ${sql.lit(keptMs)} order by final_at_ms limit ${sql.lit(limit)}
  `.execute(transaction);
  await deleteTold(transaction, dialect, rows);
  return rows.length >= limit;
}
