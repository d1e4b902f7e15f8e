import { Kysely, sql, type Transaction } from "kysely";
import { DatabaseError, isDatabaseError } from "./database-error.ts";
import { type DatabaseLocation, parseDatabaseUrl } from "./database-url.ts";
import type { Dialect } from "./dialect.ts";
import type { TransactionOptions } from "./durability.ts";
import type { Engine } from "./engine.ts";
import type { Notifications } from "./notifications.ts";
import { createPostgresEngine } from "./postgres/postgres-engine.ts";
import { openSqliteEngine } from "./sqlite/sqlite-engine.ts";

export interface DatabaseOptions {
  /** `sqlite:./file.db`, `sqlite::memory:` or `postgres://user:password@host:5432/database`. */
  url: string;
  /** Whether a commit is on the disk before it resolves, unless a transaction says otherwise. Default `true`. */
  durable?: boolean;
  /** Opens without the right to write, and without creating a file. Default `false`. */
  readOnly?: boolean;
  /** SQLite: what each of the two connections keeps of the file in memory at most, in MiB. Default 16. */
  cacheMebibytes?: number;
  /** How long a statement waits for what others have locked. Default 10,000. */
  lockTimeoutMs?: number;
  /** PostgreSQL: connections in the pool. Default 16: more were not faster on two cores. */
  poolSize?: number;
  /** PostgreSQL: how long to wait for a connection. Default 5,000. */
  connectTimeoutMs?: number;
  /** PostgreSQL: how long a statement, or the pause between two of a transaction, may take. Default 30,000. */
  statementTimeoutMs?: number;
  /** PostgreSQL: the name under which its administrator sees the connections. Default `coinslot`. */
  applicationName?: string;
  /** Told of connections that broke in the background, and of handlers of notifications that threw. */
  onBackgroundError?: (error: unknown) => void;
}

/** An open database. Whatever its engine refuses comes as a `DatabaseError`. */
export interface Database<Schema> {
  readonly engine: Dialect["engine"];
  readonly dialect: Dialect;
  /** For queries outside of transactions; each is one by itself. */
  readonly kysely: Kysely<Schema>;
  /**
   * Runs `work` in a transaction, which is undone if it throws. Query through the handle it is given alone: another
   * query would wait for the transaction it stands in, until `lockTimeoutMs`. An error of kind `unreachable` means
   * that nothing was written, `connection-lost` that the commit may have been.
   */
  transaction<Result>(
    work: (transaction: Transaction<Schema>) => Promise<Result>,
    options?: TransactionOptions,
  ): Promise<Result>;
  /** Sends to all that listen on this database: on PostgreSQL in all processes, on SQLite in this one. */
  readonly notify: Notifications["notify"];
  readonly listen: Notifications["listen"];
  /** Waits for what runs, then closes. Harmless when repeated. */
  close(): Promise<void>;
}

/**
 * Opens a database, and asks it for something, so that a wrong URL, credentials, a file that is no database, or a host
 * that does not answer are told now: rejects with a `DatabaseError` of kind `configuration` or `unreachable`.
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
    durable,
    lockTimeoutMs: options.lockTimeoutMs ?? 10_000,
    onBackgroundError: options.onBackgroundError ?? (() => {}),
  };
  if (location.engine === "sqlite")
    return openSqliteEngine({
      ...location,
      ...common,
      cacheMebibytes: options.cacheMebibytes ?? 16,
    });
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
