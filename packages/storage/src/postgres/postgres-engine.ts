import { PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from "kysely";
import { Client, type ClientBase, type ClientConfig, Pool, type QueryConfig, types } from "pg";
import type { Engine } from "../engine.ts";
import { commitSetting } from "./commit-setting.ts";
import { postgresDialect } from "./postgres-dialect.ts";
import { createPostgresDriver } from "./postgres-driver.ts";
import { postgresError } from "./postgres-error.ts";
import { createPostgresNotifications } from "./postgres-notifications.ts";

export interface PostgresEngineOptions {
  connectionString: string;
  label: string;
  readOnly: boolean;
  durable: boolean;
  poolSize: number;
  connectTimeoutMs: number;
  lockTimeoutMs: number;
  statementTimeoutMs: number;
  applicationName: string;
  onBackgroundError: (error: unknown) => void;
}

/** Prepares a pool; the first query connects. */
export function createPostgresEngine(options: PostgresEngineOptions): Engine {
  const { label, statementTimeoutMs, onBackgroundError } = options;
  const config: ClientConfig = {
    connectionString: options.connectionString,
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectTimeoutMs,
    statement_timeout: statementTimeoutMs,
    lock_timeout: options.lockTimeoutMs,
    // Limit for a process that froze inside a transaction: it must not keep its locks from the
    // others.
    idle_in_transaction_session_timeout: statementTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: { getTypeParser },
  };
  const pool = new Pool({
    ...config,
    max: options.poolSize,
    idleTimeoutMillis: 60_000,
    onConnect: (client) => configure(client, options),
  });
  // The pool has removed an idle connection that breaks; without a handler, the event would end the
  // process.
  pool.on("error", (error) => onBackgroundError(postgresError(label, error)));

  return {
    dialect: postgresDialect,
    kyselyDialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => createPostgresDriver({ pool, label, statementTimeoutMs }),
      createIntrospector: (kysely) => new PostgresIntrospector(kysely),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
    async setDurability(transaction, durability) {
      const setting = durability === "disk" ? "on" : "off";
      await transaction.executeQuery(commitSetting(`set local synchronous_commit = ${setting}`));
    },
    // A commit itself waits for the disk.
    sync: async () => {},
    verify: async () => {},
    notifications: createPostgresNotifications({
      pool,
      label,
      answerTimeoutMs: statementTimeoutMs,
      createClient: () =>
        new Client({ ...config, pipeline: true, query_timeout: options.connectTimeoutMs }),
      heartbeatMs: 15_000,
      onBackgroundError,
    }),
  };
}

async function configure(
  client: ClientBase,
  { durable, readOnly, connectTimeoutMs }: PostgresEngineOptions,
) {
  // A client in use that breaks between two queries emits an event; the next query reports the
  // same.
  client.on("error", () => {});
  // The pool's own time limit does not cover this.
  const set = (text: string) => {
    const query: QueryConfig & { query_timeout: number } = {
      text,
      query_timeout: connectTimeoutMs,
    };
    return client.query(query);
  };
  // A stricter setting of the server (remote_apply) stays.
  await set(
    durable
      ? "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'"
      : "set synchronous_commit = off",
  );
  if (readOnly) await set("set default_transaction_read_only = on");
}

/**
 * Bigint columns are numbers in code. One that a number cannot hold is refused. Amounts have a type
 * of their own, and come as text, as everything that PostgreSQL calls numeric.
 */
function getTypeParser(oid: number, format?: "text" | "binary") {
  return oid === types.builtins.INT8 ? parseInteger : types.getTypeParser(oid, format);
}

function parseInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} does not fit into a number`);
  return value;
}
