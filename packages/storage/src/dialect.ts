import {
  type ColumnBuilderCallback,
  type Expression,
  type RawBuilder,
  type SelectQueryBuilder,
  sql,
  type Transaction,
} from "kysely";
import type { DatabaseErrorKind } from "./database-error.ts";
import { type InsertMany, insertWithCopyOrUnnest, insertWithValues } from "./insert-many.ts";
import { postgresRowsWith, type RowsWith, sqliteRowsWith } from "./rows-with.ts";
import { reclaimSqliteSpace } from "./sqlite/reclaim-space.ts";
import { decodeSqliteAmount, encodeSqliteAmount, sqliteSum } from "./sqlite/sqlite-amount.js";

declare const storedAmount: unique symbol;

/**
 * A uint256 in the form of a column and of the engine's driver. Only `dialect.amount.encode` makes
 * one. A plain decimal text, which would sort wrongly in SQLite, therefore does not compile.
 */
export type StoredAmount = string & { readonly [storedAmount]: true };

declare const storedSum: unique symbol;

/** A sum of amounts, which may exceed a uint256. Only `dialect.amount.encodeSum` makes one. */
export type StoredSum = string & { readonly [storedSum]: true };

/** All differences between SQLite and PostgreSQL in the queries of the packages above. */
export interface Dialect {
  readonly engine: "sqlite" | "postgres";

  /**
   * Column types. In a schema: `integer` and `timestampMs` are `number`, `amount` is
   * `StoredAmount`.
   */
  readonly types: {
    /**
     * Whole numbers up to 2^53; larger ones are refused when read, never rounded. Also for
     * booleans, as 0 and 1.
     */
    readonly integer: RawBuilder<unknown>;
    /** Milliseconds since 1970. */
    readonly timestampMs: RawBuilder<unknown>;
    /** An unsigned integer of up to 256 bits. */
    readonly amount: RawBuilder<unknown>;
    /** A sum of amounts, of up to 99 digits. */
    readonly sum: RawBuilder<unknown>;
    readonly bytes: RawBuilder<unknown>;
    readonly text: RawBuilder<unknown>;
  };

  /** Makes an `integer` column an auto-increment primary key that never reuses a number. */
  readonly autoIncrement: ColumnBuilderCallback;

  /** Stored amounts compare and sort as numbers: `=`, `<`, `order by`, `min`, `max`, indexes. */
  readonly amount: {
    /** Throws a `RangeError` on a number that is not a uint256. */
    encode(amount: bigint): StoredAmount;
    /** Throws a `RangeError` on a number that is negative, or has more than 99 digits. */
    encodeSum(sum: bigint): StoredSum;
    decode(stored: StoredAmount | StoredSum): bigint;
    /** The sum, `0` without rows. It may exceed a uint256; comparisons with it hold. */
    sum(column: Expression<StoredAmount | StoredSum | null>): RawBuilder<StoredAmount>;
  };

  /** The bytes of a column of hex texts that begin with `0x`; `null` of `null`. */
  fromHex(column: Expression<string | null>): RawBuilder<Uint8Array>;

  /** The database's clock when the statement runs, in milliseconds. */
  nowMs(): RawBuilder<number>;

  /**
   * Texts for `where(column, "in", dialect.among(texts))`; at least one. In SQLite they are one
   * parameter: the statement is the same for any number of them and stays prepared. PostgreSQL
   * plans better with separate values.
   */
  among<Text extends string>(texts: readonly Text[]): RawBuilder<Text>;

  readonly rowsWith: RowsWith;

  /** Locks the selected rows until the transaction ends. For `query.$call(dialect.forUpdate)`. */
  readonly forUpdate: RowLock;
  /** As `forUpdate`, but skips locked rows: for workers that share a queue. */
  readonly forUpdateSkipLocked: RowLock;
  /** For the end of a raw select: no other transaction changes the rows before this one ends. */
  readonly forShare: RawBuilder<unknown>;

  /**
   * Waits until no other transaction holds `key`, and holds it until this one ends. Lock order for
   * several keys: that of their texts. SQLite has one writer at a time, so it has nothing to do.
   */
  lockKey<Schema>(transaction: Transaction<Schema>, key: string): Promise<void>;

  /**
   * Excludes all other writers of a table, and those that lock rows of it, until the transaction
   * ends. It does not wait for them. SQLite has one writer at a time, so it has nothing to do.
   *
   * @returns whether it is locked: no other transaction has written to it and is still open
   */
  tryLockTable<Schema>(
    transaction: Transaction<Schema>,
    table: keyof Schema & string,
  ): Promise<boolean>;

  readonly insertMany: InsertMany;

  /**
   * Lifts the time limits of statements for this transaction: building an index may take minutes.
   */
  liftTimeouts<Schema>(transaction: Transaction<Schema>): Promise<void>;

  hasTable<Schema>(transaction: Transaction<Schema>, table: string): Promise<boolean>;

  /**
   * Shortens a SQLite file by up to so many unused pages, if it was created with
   * `incrementalVacuum`. A sixteenth of the file stays for new rows. PostgreSQL's autovacuum needs
   * no call.
   *
   * @returns whether more can be given back.
   */
  reclaimSpace<Schema>(transaction: Transaction<Schema>, pages: number): Promise<boolean>;

  /** Kind of an error of the engine's driver. */
  classify(error: unknown): DatabaseErrorKind;
}

type RowLock = <Schema, Table extends keyof Schema, Row>(
  query: SelectQueryBuilder<Schema, Table, Row>,
) => SelectQueryBuilder<Schema, Table, Row>;

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
  among: (texts) => sql`(select value from json_each(${JSON.stringify(texts)}))`,
  rowsWith: sqliteRowsWith,
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
  among: (texts) => sql`(${sql.join(texts)})`,
  rowsWith: postgresRowsWith,
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

function uint256(amount: bigint): bigint {
  if (amount < 0n || amount >= 1n << 256n) throw new RangeError(`Not a uint256: ${amount}`);
  return amount;
}

function atMost99Digits(sum: bigint): bigint {
  if (sum < 0n || sum >= 10n ** 99n) throw new RangeError(`Not a sum of amounts: ${sum}`);
  return sum;
}

/**
 * By SQLite's extended result codes, https://www.sqlite.org/rescode.html; the low byte is the
 * primary one.
 */
function classifySqliteError(error: unknown): DatabaseErrorKind {
  const code = property(error, "errcode");
  if (typeof code !== "number") return classifySqliteMessage(property(error, "message"));
  if (code === 1555 || code === 2067 || code === 2579) return "unique-violation";
  switch (code & 0xff) {
    case 5: // busy: another connection writes
    case 6: // locked
      return "busy";
    case 10: // input or output failed
    case 13: // the disk is full
      return "storage-full";
    case 8: // read-only
    case 14: // cannot open
    case 26: // not a database
      return "configuration";
    case 19:
      return "constraint-violation";
    default:
      return "statement";
  }
}

/**
 * `@photostructure/sqlite` throws without a code for statements that return rows; these are
 * SQLite's own messages.
 */
function classifySqliteMessage(message: unknown): DatabaseErrorKind {
  if (typeof message !== "string") return "statement";
  if (/database (table |schema )?is locked/.test(message)) return "busy";
  if (/UNIQUE constraint failed/.test(message)) return "unique-violation";
  if (/constraint failed/.test(message)) return "constraint-violation";
  if (/disk is full|disk I\/O error/.test(message)) return "storage-full";
  if (/readonly database|unable to open database|is not a database/.test(message)) {
    return "configuration";
  }
  return "statement";
}

/**
 * By SQLSTATE, https://www.postgresql.org/docs/current/errcodes-appendix.html, and by the system's
 * network codes.
 */
function classifyPostgresError(error: unknown): DatabaseErrorKind {
  const code = property(error, "code");
  if (typeof code !== "string") return classifyPostgresMessage(property(error, "message"));
  if (/^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENOENT)$/.test(code)) {
    return "unreachable";
  }
  if (code === "23505") return "unique-violation";
  if (code === "57P03" || code === "53300") return "unreachable"; // starting up; too many connections
  // A primary that has become a standby: a new connection finds the new primary.
  if (code === "25006") return "unreachable";
  // Its administrator refuses all connections. Other objects that are not ready have the same code.
  if (code === "55000" && /accepting connections/.test(String(property(error, "message"))))
    return "unreachable";
  if (/^(40001|40P01|55P03|57014)$/.test(code)) return "busy"; // serialization, deadlock, lock, time limit
  if (/^(28|3D)/.test(code)) return "configuration"; // credentials; no such database
  if (/^23/.test(code)) return "constraint-violation";
  if (/^(53|58)/.test(code)) return "storage-full";
  if (/^(08|57P|25P03|E[A-Z]+$)/.test(code)) return "connection-lost";
  return "statement";
}

/** Errors of the driver itself have no code. */
function classifyPostgresMessage(message: unknown): DatabaseErrorKind {
  if (typeof message !== "string") return "statement";
  if (/not queryable|timeout expired|trying to connect|due to connection timeout/.test(message)) {
    return "unreachable";
  }
  if (/^Connection terminated|read timeout/.test(message)) return "connection-lost";
  if (/SASL|password|SSL/.test(message)) return "configuration";
  return "statement";
}

function property(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
