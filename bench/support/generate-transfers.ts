import { type Database, openDatabase } from "@coinslot/storage";
import { type Expression, sql } from "kysely";

/** The account with far more transfers than any other. */
export const heavy = 0;

const logsPerBlock = 2 ** 21;
const perBlock = 10;
const rowsPerAccount = 100;
/** Rows per write: more would grow the databases' logs without a gain. */
const rowsAtOnce = 1_000_000;

type AnyDatabase = Database<Record<string, never>>;

/** The address of an account by its number. */
export function addressOf(account: number): `0x${string}` {
  return `0x${Buffer.from(account.toString().padStart(20, "0")).toString("hex")}`;
}

/**
 * Fills the tables of an indexer that is not running with transfers of its only token. The
 * database's own means, and indexes made afterwards, take a minute instead of an hour.
 *
 * Every tenth transfer is sent by `HEAVY`. The rest have senders evenly, and recipients such that
 * few receive very much and most a little. The number of account k's transfers falls with the root
 * of k.
 */
export async function generateTransfers(
  url: string,
  rows: number,
): Promise<{ accounts: number; heavyTransfers: number; bytes: number }> {
  const database: AnyDatabase = await openDatabase({
    url,
    durable: false,
    poolSize: 1,
    statementTimeoutMs: 600_000,
  });
  try {
    const accounts = Math.floor(rows / rowsPerAccount);
    await prepare(database);
    const remakeIndexes = await dropIndexes(database);
    for (let from = 0; from < rows; from += rowsAtOnce)
      await insertTransfers(database, { from, next: Math.min(rows, from + rowsAtOnce), accounts });
    await insertBlocks(database, rows / perBlock);
    await remakeIndexes();
    return {
      accounts,
      bytes: await countBytes(database),
      heavyTransfers: await countHeavyTransfers(database),
    };
  } finally {
    await database.close();
  }
}

/** Loading is faster if a crash may spoil the result, and if sorting has memory. */
async function prepare({ kysely, engine }: AnyDatabase): Promise<void> {
  const settings =
    engine === "sqlite"
      ? ["pragma synchronous = off", "pragma cache_size = -500000", "pragma threads = 2"]
      : [
          "set maintenance_work_mem = '1GB'",
          "set max_parallel_maintenance_workers = 2",
          "alter table indexer_transfers set unlogged",
        ];
  for (const setting of settings) await sql.raw(setting).execute(kysely);
}

/** Drops the non-primary indexes of the transfers; returns a function that creates them again. */
async function dropIndexes({ kysely, engine }: AnyDatabase): Promise<() => Promise<void>> {
  const list =
    engine === "sqlite"
      ? sql<{ name: string; definition: string }>`
          select name, sql as definition from sqlite_master
          where type = 'index' and tbl_name = 'indexer_transfers' and sql is not null`
      : sql<{ name: string; definition: string }>`
          select indexname as name, indexdef as definition from pg_indexes
          where tablename = 'indexer_transfers' and indexname not like '%_key'`;
  const { rows: indexes } = await list.execute(kysely);
  for (const { name } of indexes) await sql`drop index ${sql.id(name)}`.execute(kysely);
  // PostgreSQL gathers statistics automatically. SQLite never does, nor does the indexer. With
  // statistics SQLite would plan a statement again for each parameter value, which takes as long as
  // running it.
  const last = engine === "sqlite" ? [] : ["vacuum analyze"];
  return async () => {
    for (const statement of [...indexes.map(({ definition }) => definition), ...last])
      await sql.raw(statement).execute(kysely);
  };
}

async function insertTransfers(
  { kysely, engine }: AnyDatabase,
  { from, next, accounts }: { from: number; next: number; accounts: number },
): Promise<void> {
  const number = sql`(n * 7919 % ${sql.lit(accounts)})`;
  const sender = sql`case when n % 10 = 0 then ${sql.lit(heavy)} else n % ${sql.lit(accounts)} end`;
  const recipient = sql`${number} * ${number} / ${sql.lit(accounts)}`;
  const position = sql`(n / ${sql.lit(perBlock)} + 1) * ${sql.lit(logsPerBlock)} + n % ${sql.lit(perBlock)}`;
  const { address, hash, amount } = valuesOf(engine);
  await sql`
    insert into indexer_transfers (token_id, position, transaction_index, transfer_index, transaction_hash, from_address, to_address, amount)
    with recursive ${numbers(engine, { from, next })}
    select (select id from indexer_tokens), ${position}, n % ${sql.lit(perBlock)}, 0, ${hash}, ${address(sender)}, ${address(recipient)}, ${amount}
    from numbers
  `.execute(kysely);
}

async function insertBlocks({ kysely, engine }: AnyDatabase, blocks: number): Promise<void> {
  await sql`
    insert into indexer_blocks (chain_id, number, hash, timestamp_ms)
    with recursive ${numbers(engine, { from: 1, next: blocks + 1 })}
    select (select chain_id from indexer_tokens), n, ${valuesOf(engine).hash}, 1700000000000 + n * 1000
    from numbers
  `.execute(kysely);
}

/** A table `numbers` of the numbers `n` from `from` up to but not including `next`. */
function numbers(
  engine: AnyDatabase["engine"],
  { from, next }: { from: number; next: number },
): Expression<unknown> {
  return engine === "sqlite"
    ? sql`numbers(n) as (select ${sql.lit(from)} union all select n + 1 from numbers where n < ${sql.lit(next - 1)})`
    : sql`numbers(n) as (select generate_series(${sql.lit(from)}::bigint, ${sql.lit(next - 1)}::bigint))`;
}

function valuesOf(engine: AnyDatabase["engine"]) {
  return engine === "sqlite"
    ? {
        address: (account: Expression<unknown>) => sql`cast(printf('%020d', ${account}) as blob)`,
        hash: sql`randomblob(32)`,
        amount: sql`'07:1000000'`,
      }
    : {
        address: (account: Expression<unknown>) => sql`lpad((${account})::text, 20, '0')::bytea`,
        hash: sql`sha256(int8send(n))`,
        amount: sql`1000000`,
      };
}

async function countHeavyTransfers({ kysely }: AnyDatabase): Promise<number> {
  const address = Buffer.from(addressOf(heavy).slice(2), "hex");
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from indexer_transfers where from_address = ${address} or to_address = ${address}
  `.execute(kysely);
  return rows[0]?.count ?? 0;
}

async function countBytes({ kysely, engine }: AnyDatabase): Promise<number> {
  const size =
    engine === "sqlite"
      ? sql<{
          bytes: number;
        }>`select page_count * page_size as bytes from pragma_page_count, pragma_page_size`
      : sql<{ bytes: number }>`select pg_database_size(current_database()) as bytes`;
  const { rows } = await size.execute(kysely);
  return rows[0]?.bytes ?? 0;
}
