import { sql } from "kysely";
import { atMost99Digits, uint256 } from "../amount-range.ts";
import type { Dialect, StoredAmount, StoredSum } from "../dialect.ts";
import { insertWithValues } from "../insert-many.ts";
import { sqliteRecords } from "../records.ts";
import { sqliteRowsWith } from "../rows-with.ts";
import { classifySqliteError } from "./classify-error.ts";
import { reclaimSqliteSpace } from "./reclaim-space.ts";
import { decodeSqliteAmount, encodeSqliteAmount, sqliteSum } from "./sqlite-amount.js";

export const sqliteDialect: Dialect = {
  engine: "sqlite",
  types: {
    integer: sql`integer`,
    timestampMs: sql`integer`,
    amount: sql`text`,
    sum: sql`text`,
    bytes: sql`blob`,
    text: sql`text`,
  },
  autoIncrement: (column) => column.primaryKey().autoIncrement(),
  amount: {
    encode: (amount) => encodeSqliteAmount(uint256(amount)) as StoredAmount,
    encodeSum: (sum) => encodeSqliteAmount(atMost99Digits(sum)) as StoredSum,
    decode: decodeSqliteAmount,
    sum: (column) =>
      sql<StoredAmount>`coalesce(${sql.raw(sqliteSum)}(${column}), ${encodeSqliteAmount(0n)})`,
  },
  fromHex: (column) => sql<Uint8Array>`unhex(substr(${column}, 3))`,
  nowMs: () => sql<number>`cast(round(unixepoch('subsec') * 1000) as integer)`,
  beginMs: () => sql<number>`cast(round(unixepoch('subsec') * 1000) as integer)`,
  among: (texts) => sql`(select value from json_each(${JSON.stringify(texts)}))`,
  rowsWith: sqliteRowsWith,
  records: sqliteRecords,
  forUpdate: (query) => query,
  forUpdateSkipLocked: (query) => query,
  forShare: sql``,
  lockKey: async () => {},
  tryLockTable: async () => true,
  insertMany: insertWithValues,
  liftTimeouts: async () => {},
  hasTable: async (transaction, table) => {
    const found = sql`select 1 from sqlite_master where type = 'table' and name = ${table}`;
    return (await found.execute(transaction)).rows.length > 0;
  },
  reclaimSpace: reclaimSqliteSpace,
  classify: classifySqliteError,
};
