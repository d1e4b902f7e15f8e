import type { CompiledQuery, DatabaseConnection, Driver, QueryResult } from "kysely";
import type { Pool, PoolClient, QueryConfig } from "pg";
import { DatabaseError, isDatabaseError } from "../database-error.ts";
import { isCommitSetting } from "./commit-setting.ts";
import { type CopyQuery, isCopyQuery, runCopy } from "./copy-query.ts";
import { postgresLiftTimeouts } from "./postgres-dialect.ts";
import { postgresError } from "./postgres-error.ts";

interface Session extends DatabaseConnection {
  /** Missing if the connection died at the beginning of a transaction and could not be replaced. */
  client?: PoolClient | undefined;
  /**
   * After a lost connection or an unanswered query the client is in an unknown state, and leaves
   * the pool.
   */
  broken: boolean;
  /** Its transaction has lifted the time limits. */
  unlimited: boolean;
  /** The statement that its transaction sends right before the commit. */
  commitSetting?: string | undefined;
}

export interface PostgresDriverOptions {
  pool: Pool;
  label: string;
  /** The server's limit for a statement; a much later answer means that the connection is dead. */
  statementTimeoutMs: number;
}

interface DriverContext {
  readonly pool: Pool;
  readonly label: string;
  /** Limit of an answer. A later one means that the connection is dead. */
  readonly answerTimeoutMs: number;
}

const answerAllowanceMs = 5_000;

/** Kysely's driver over a pool of `pg`, with typed errors. A broken client is never used again. */
export function createPostgresDriver(options: PostgresDriverOptions): Driver {
  const { pool, label, statementTimeoutMs } = options;
  const context = { pool, label, answerTimeoutMs: statementTimeoutMs + answerAllowanceMs };
  return {
    async init() {},
    async acquireConnection() {
      return createSession(context, await connect(context));
    },
    async releaseConnection(session: Session) {
      session.client?.release(session.broken);
    },
    beginTransaction: (session: Session) => begin(context, session),
    commitTransaction: (session: Session) => commit(context, session),
    rollbackTransaction: (session: Session) => rollback(context, session),
    destroy: () => pool.end(),
  };
}

function createSession(context: DriverContext, client: PoolClient): Session {
  const session: Session = {
    client,
    broken: false,
    unlimited: false,
    async executeQuery<Row>(compiled: CompiledQuery): Promise<QueryResult<Row>> {
      if (isCopyQuery(compiled)) {
        return { rows: [], numAffectedRows: BigInt(await copy(context, session, compiled)) };
      }
      const { sql, parameters } = compiled;
      if (isCommitSetting(compiled)) {
        session.commitSetting = sql;
        return { rows: [] };
      }
      if (sql === postgresLiftTimeouts) session.unlimited = true;
      const { rows, rowCount } = await run(context, session, sql, parameters);
      return { rows, numAffectedRows: BigInt(rowCount ?? 0) };
    },
    // biome-ignore lint/correctness/useYield: Kysely asks for this method; neither engine has it.
    async *streamQuery() {
      throw new Error("Streaming is not supported: read page after page by a key.");
    },
  };
  return session;
}

async function begin(context: DriverContext, session: Session): Promise<void> {
  session.commitSetting = undefined;
  // After a restart of the server the pool is full of undetected dead connections. They lose no
  // more than a begin here, so another one may be tried. A silent connection takes long to detect
  // as dead, and is seldom the only one.
  const start = performance.now();
  for (let attempt = 0; ; attempt++) {
    try {
      await run(context, session, "begin");
      return;
    } catch (error) {
      const hasWaited = performance.now() - start > answerAllowanceMs;
      if (!session.broken || hasWaited || attempt === context.pool.options.max) throw error;
    }
    // Released first, otherwise sixteen of them would wait for a seventeenth.
    session.client?.release(true);
    session.client = undefined;
    session.client = await connect(context);
    session.broken = false;
  }
}

async function commit(context: DriverContext, session: Session): Promise<void> {
  const { commitSetting } = session;
  // PostgreSQL refuses the setting of a transaction in which a statement failed, and with it the
  // commit. To a commit alone it answers ROLLBACK.
  if (commitSetting !== undefined) {
    await run(context, session, `${commitSetting}; commit`);
    return;
  }
  const { command } = await run(context, session, "commit");
  if (command === "ROLLBACK") {
    throw new DatabaseError(
      "statement",
      `${context.label}: a statement failed, so the transaction was rolled back`,
    );
  }
}

async function rollback(context: DriverContext, session: Session): Promise<void> {
  if (session.broken) return;
  try {
    await run(context, session, "rollback");
  } catch {
    // The connection is closed instead, which undoes the same; the caller receives the error that
    // led here.
    session.broken = true;
  }
}

async function connect({ pool, label }: DriverContext): Promise<PoolClient> {
  try {
    return await pool.connect();
  } catch (cause) {
    const error = postgresError(label, cause);
    // Lost before any statement of the caller: nothing was written.
    if (!isDatabaseError(error, "connection-lost")) throw error;
    throw new DatabaseError("unreachable", error.message, { cause });
  }
}

function run(
  context: DriverContext,
  session: Session,
  text: string,
  values: readonly unknown[] = [],
) {
  return ask(context, session, (client, query_timeout) => {
    const query: QueryConfig & { query_timeout: number } = {
      text,
      values: [...values],
      query_timeout,
    };
    return client.query(query);
  });
}

function copy(
  context: DriverContext,
  session: Session,
  { sql, copied }: CopyQuery,
): Promise<number> {
  return ask(context, session, (client, query_timeout) =>
    runCopy(client, { text: sql, query_timeout, copied }),
  );
}

async function ask<Answer>(
  { label, answerTimeoutMs }: DriverContext,
  session: Session,
  query: (client: PoolClient, timeoutMs: number) => Promise<Answer>,
): Promise<Answer> {
  try {
    if (session.client === undefined) throw new Error("Client is not queryable");
    return await query(session.client, session.unlimited ? 0 : answerTimeoutMs);
  } catch (cause) {
    const error = postgresError(label, cause);
    session.broken ||= error.kind === "connection-lost" || error.kind === "unreachable";
    throw error;
  }
}
