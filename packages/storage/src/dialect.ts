import type {
  ColumnBuilderCallback,
  Expression,
  RawBuilder,
  SelectQueryBuilder,
  Transaction,
} from "kysely";
import type { DatabaseErrorKind } from "./database-error.ts";
import type { InsertMany } from "./insert-many.ts";
import type { Records } from "./records.ts";
import type { RowsWith } from "./rows-with.ts";

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
   * The database's clock when the transaction began, in milliseconds. In SQLite, where one process
   * has the database, when the statement runs.
   */
  beginMs(): RawBuilder<number>;

  /**
   * Texts for `where(column, "in", dialect.among(texts))`; at least one. In SQLite they are one
   * parameter: the statement is the same for any number of them and stays prepared. PostgreSQL
   * plans better with separate values.
   */
  among<Text extends string>(texts: readonly Text[]): RawBuilder<Text>;

  readonly rowsWith: RowsWith;

  readonly records: Records;

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
