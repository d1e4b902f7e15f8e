import { Kysely, sql, type Transaction } from "kysely";
import { DatabaseError, isDatabaseError } from "./database-error.ts";
import { type DatabaseLocation, parseDatabaseUrl } from "./database-url.ts";
import type { Dialect } from "./dialect.ts";
import type { TransactionOptions } from "./durability.ts";
import type { Engine } from "./engine.ts";
import type { Notifications } from "./notifications.ts";
import { createPostgresEngine } from "./postgres/postgres-engine.ts";
import { openSqliteEngine, openSqliteReaderEngine } from "./sqlite/sqlite-engine.ts";

export interface DatabaseOptions {
  /** `sqlite:./file.db`, `sqlite::memory:` or `postgres://user:password@host:5432/database`. */
  url: string;
  /**
   * True if a commit is on the disk before it resolves, unless a transaction says otherwise.
   * Default `true`.
   */
  durable?: boolean;
  /** Opens without the right to write, and without creating a file. Default `false`. */
  readOnly?: boolean;
  /** SQLite: creates a file that is not there. Default `true`. */
  create?: boolean;
  /**
   * SQLite, with `readOnly`: queries run in a thread of their own. So a long one does not hold the
   * event loop. Not for a database in memory. Default `false`.
   */
  inThread?: boolean;
  /** SQLite: largest page cache of each of the two connections, in MiB. Default 16. */
  cacheMebibytes?: number;
  /**
   * SQLite: a new file can be shortened by `dialect.reclaimSpace`. An existing one stays as it was
   * created. Default `false`.
   */
  incrementalVacuum?: boolean;
  /** Longest wait of a statement for locks of others. Default 10,000. */
  lockTimeoutMs?: number;
  /** PostgreSQL: connections in the pool. Default 16: more were not faster on two cores. */
  poolSize?: number;
  /** PostgreSQL: longest wait for a connection. Default 5,000. */
  connectTimeoutMs?: number;
  /**
   * PostgreSQL: limit of a statement, and of the pause between two of a transaction. Default
   * 30,000.
   */
  statementTimeoutMs?: number;
  /** PostgreSQL: name of the connections for its administrator. Default `coinslot`. */
  applicationName?: string;
  /** Receives errors of connections that broke in the background, and of notification handlers. */
  onBackgroundError?: (error: unknown) => void;
}

/** An open database. Every error of its engine arrives as a `DatabaseError`. */
export interface Database<Schema> {
  readonly engine: Dialect["engine"];
  readonly dialect: Dialect;
  /** Queries outside of transactions; each is one by itself. */
  readonly kysely: Kysely<Schema>;
  /**
   * Runs `work` in a transaction, which is undone if it throws. Query through the given handle
   * alone. Another query would wait for the transaction that contains it, until `lockTimeoutMs`. An
   * error of kind `unreachable` means that nothing was written, `connection-lost` that the commit
   * may have been.
   */
  transaction<Result>(
    work: (transaction: Transaction<Schema>) => Promise<Result>,
    options?: TransactionOptions,
  ): Promise<Result>;
  /**
   * Sends to all listeners of this database: on PostgreSQL in all processes, on SQLite in this one.
   */
  readonly notify: Notifications["notify"];
  readonly listen: Notifications["listen"];
  /**
   * Resolves if what is written stays. On SQLite it rejects with an error of kind `file-replaced`
   * where the file has been moved, replaced or deleted. The kind is `connection-lost` where the
   * disk has failed once. Only a new `openDatabase` helps then. PostgreSQL's server judges that
   * itself.
   */
  verify(): Promise<void>;
  /** Waits for running queries, then closes. Idempotent. */
  close(): Promise<void>;
}

/**
 * Opens a database and queries it at once, to detect faults early. Faults are a wrong URL, wrong
 * credentials, a file that is no database, or a host that does not answer. Rejects with a
 * `DatabaseError` of kind `configuration` or `unreachable`.
 *
 * @example
 * ```ts
 * const database = await openDatabase<Schema>({ url: "sqlite:./coinslot.db" }); // or postgres://…
 * await migrate(database, { name: "payments", migrations });
 *
 * const amount = database.dialect.amount.encode(1_000n);
 * const { write } = createWriter(database);
 * await write((tx) =>
 *   tx.insertInto("payments").values({ nonce: "0x01", state: "reserved", amount }).execute(),
 * );
 *
 * await database.close();
 * ```
 */
export async function openDatabase<Schema>(options: DatabaseOptions): Promise<Database<Schema>> {
  const location = parseDatabaseUrl(options.url);
  const { durable = true } = options;
  const engine = await openEngine(location, options, durable);
  const kysely = new Kysely<Schema>({ dialect: engine.kyselyDialect });

  async function closeAll(): Promise<void> {
    await engine.notifications.close();
    await kysely.destroy();
  }

  async function transact<Result>(
    work: (transaction: Transaction<Schema>) => Promise<Result>,
    { durability, onCommit }: TransactionOptions = {},
  ): Promise<Result> {
    const isUsual = durability === undefined || durable === (durability === "disk");
    const result = await runTransaction(kysely, async (transaction) => {
      if (!isUsual) await engine.setDurability(transaction, durability);
      return work(transaction);
    });
    onCommit?.();
    if (durability === "disk" || (durability === undefined && durable)) await engine.sync();
    return result;
  }
  let closing: Promise<void> | undefined;

  try {
    await sql`select 1`.execute(kysely);
  } catch (error) {
    await closeAll();
    throw error;
  }
  return {
    engine: engine.dialect.engine,
    dialect: engine.dialect,
    kysely,
    transaction: transact,
    notify: engine.notifications.notify,
    listen: engine.notifications.listen,
    verify: engine.verify,
    close() {
      closing ??= closeAll();
      return closing;
    },
  };
}

async function openEngine(
  location: DatabaseLocation,
  options: DatabaseOptions,
  durable: boolean,
): Promise<Engine> {
  const common = {
    readOnly: options.readOnly ?? false,
    create: options.create ?? true,
    durable,
    lockTimeoutMs: options.lockTimeoutMs ?? 10_000,
    onBackgroundError: options.onBackgroundError ?? (() => {}),
  };
  if (location.engine === "sqlite") {
    const open = common.readOnly && options.inThread ? openSqliteReaderEngine : openSqliteEngine;
    const cacheMebibytes = options.cacheMebibytes ?? 16;
    const incrementalVacuum = options.incrementalVacuum ?? false;
    return open({ ...location, ...common, cacheMebibytes, incrementalVacuum });
  }
  return createPostgresEngine({
    ...location,
    ...common,
    poolSize: options.poolSize ?? 16,
    connectTimeoutMs: options.connectTimeoutMs ?? 5_000,
    statementTimeoutMs: options.statementTimeoutMs ?? 30_000,
    applicationName: options.applicationName ?? "coinslot",
  });
}

async function runTransaction<Schema, Result>(
  kysely: Kysely<Schema>,
  work: (transaction: Transaction<Schema>) => Promise<Result>,
): Promise<Result> {
  let committing = false;
  try {
    return await kysely.transaction().execute(async (transaction) => {
      const result = await work(transaction);
      committing = true;
      return result;
    });
  } catch (error) {
    if (committing || !isDatabaseError(error, "connection-lost")) throw error;
    throw new DatabaseError("unreachable", `${error.message}; nothing was written`, {
      cause: error,
    });
  }
}
