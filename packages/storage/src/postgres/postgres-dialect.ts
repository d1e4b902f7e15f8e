import { sql, type Transaction } from "kysely";
import { atMost99Digits, uint256 } from "../amount-range.ts";
import type { Dialect, StoredAmount, StoredSum } from "../dialect.ts";
import { insertWithCopyOrUnnest } from "../insert-many.ts";
import { postgresRecords } from "../records.ts";
import { postgresRowsWith } from "../rows-with.ts";
import { classifyPostgresError } from "./classify-error.ts";

/**
 * The driver recognises this statement too, and then waits for answers as long as the server does.
 */
export const postgresLiftTimeouts =
  "select set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)";

export const postgresDialect: Dialect = {
  engine: "postgres",
  types: {
    integer: sql`bigint`,
    timestampMs: sql`bigint`,
    amount: sql`numeric(78, 0)`,
    sum: sql`numeric(99, 0)`,
    bytes: sql`bytea`,
    text: sql`text`,
  },
  autoIncrement: (column) => column.generatedAlwaysAsIdentity().primaryKey(),
  amount: {
    encode: (amount) => uint256(amount).toString() as StoredAmount,
    encodeSum: (sum) => atMost99Digits(sum).toString() as StoredSum,
    decode: (stored) => BigInt(stored),
    sum: (column) => sql<StoredAmount>`coalesce(sum(${column}), 0)`,
  },
  fromHex: (column) => sql<Uint8Array>`decode(substr(${column}, 3), 'hex')`,
  nowMs: () => sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`,
  beginMs: () => sql<number>`(extract(epoch from transaction_timestamp()) * 1000)::bigint`,
  among: (texts) => sql`(${sql.join(texts)})`,
  rowsWith: postgresRowsWith,
  records: postgresRecords,
  forUpdate: (query) => query.forUpdate(),
  forUpdateSkipLocked: (query) => query.forUpdate().skipLocked(),
  forShare: sql`for share`,
  lockKey: async (transaction, key) => {
    await sql`select pg_advisory_xact_lock(hashtextextended(${key}, 0))`.execute(transaction);
  },
  tryLockTable: tryLockPostgresTable,
  insertMany: insertWithCopyOrUnnest,
  liftTimeouts: async (transaction) => {
    await sql.raw(postgresLiftTimeouts).execute(transaction);
  },
  hasTable: async (transaction, table) => {
    const found = sql`select 1 where to_regclass(${table}) is not null`;
    return (await found.execute(transaction)).rows.length > 0;
  },
  reclaimSpace: async () => false,
  classify: classifyPostgresError,
};

/** A statement that fails would end the transaction, so the failure is caught where it arises. */
async function tryLockPostgresTable<Schema>(
  transaction: Transaction<Schema>,
  table: string,
): Promise<boolean> {
  await sql`
    do $body$
    begin
      lock table ${sql.table(table)} in exclusive mode nowait;
      perform set_config('coinslot.table', 'locked', true);
    exception when lock_not_available then
      perform set_config('coinslot.table', 'busy', true);
    end
    $body$
  `.execute(transaction);
  const { rows } = await sql<{ state: string }>`
    select current_setting('coinslot.table') as state
  `.execute(transaction);
  return rows[0]?.state === "locked";
}
