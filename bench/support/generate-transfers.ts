import type { Indexer } from "@coinslot/indexer";
import { sql } from "kysely";

const LOGS_PER_BLOCK = 2 ** 21;

export interface GenerateOptions {
  database: Awaited<ReturnType<Indexer["database"]>>;
  tokenId: number;
  chainId: number;
  rows: number;
}

/** How many addresses take part, and how many transfers are in a block. */
export const accounts = 100_000;
const perBlock = 10;

/** The address of a number. Every tenth transfer comes from number 0. */
export function addressOf(account: number): `0x${string}` {
  return `0x${Buffer.from(account.toString().padStart(20, "0")).toString("hex")}`;
}

/** Fills the tables by the database's own means, with the indexes made afterwards: minutes instead of hours. */
export async function generateTransfers(options: GenerateOptions): Promise<void> {
  const { database, tokenId, chainId, rows } = options;
  const { kysely, engine } = database;
  const remake = await dropIndexes(options);
  const sender = sql`case when n % 10 = 0 then 0 else n % ${sql.lit(accounts)} end`;
  const recipient = sql`n * 7919 % ${sql.lit(accounts)}`;
  const position = sql`(n / ${sql.lit(perBlock)} + 1) * ${sql.lit(LOGS_PER_BLOCK)} + n % ${sql.lit(perBlock)}`;
  const columns = sql`token_id, position, transaction_index, transfer_index, transaction_hash, from_address, to_address, amount`;
  const blocks = sql.lit(rows / perBlock);
  if (engine === "sqlite") {
    const address = (number: typeof sender) => sql`cast(printf('%020d', ${number}) as blob)`;
    await sql`
      insert into indexer_transfers (${columns})
      with recursive numbers(n) as (select 0 union all select n + 1 from numbers where n < ${sql.lit(rows - 1)})
      select ${tokenId}, ${position}, n % ${sql.lit(perBlock)}, 0, randomblob(32), ${address(sender)}, ${address(recipient)}, '07:1000000'
      from numbers
    `.execute(kysely);
    await sql`
      insert into indexer_blocks (chain_id, number, hash, timestamp_ms)
      with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${blocks})
      select ${chainId}, n, randomblob(32), 1700000000000 + n * 1000 from numbers
    `.execute(kysely);
  } else {
    const address = (number: typeof sender) => sql`lpad((${number})::text, 20, '0')::bytea`;
    const hash = sql`decode(md5(n::text) || md5((n + 1)::text), 'hex')`;
    for (let from = 0; from < rows; from += 1_000_000) {
      await sql`
        insert into indexer_transfers (${columns})
        select ${tokenId}, ${position}, n % ${sql.lit(perBlock)}, 0, ${hash}, ${address(sender)}, ${address(recipient)}, 1000000
        from generate_series(${sql.lit(from)}::bigint, ${sql.lit(Math.min(rows, from + 1_000_000) - 1)}::bigint) as numbers(n)
      `.execute(kysely);
    }
    await sql`
      insert into indexer_blocks (chain_id, number, hash, timestamp_ms)
      select ${chainId}, n, ${hash}, 1700000000000 + n * 1000 from generate_series(1, ${blocks}) as numbers(n)
    `.execute(kysely);
  }
  await remake();
}

/** Drops the indexes of the transfers that are no primary key; returns what makes them again. */
async function dropIndexes({ database }: GenerateOptions): Promise<() => Promise<void>> {
  const { kysely, engine, dialect } = database;
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
  return async () => {
    for (const statement of [...indexes.map(({ definition }) => definition), "analyze"]) {
      await database.transaction(async (transaction) => {
        await dialect.liftTimeouts(transaction);
        await sql.raw(statement).execute(transaction);
      });
    }
  };
}
