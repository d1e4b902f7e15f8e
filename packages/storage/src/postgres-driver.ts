import type { CompiledQuery, DatabaseConnection, Driver, QueryResult } from "kysely";
import type { Pool, PoolClient, QueryConfig } from "pg";
import { DatabaseError, isDatabaseError } from "./database-error.ts";
import { POSTGRES_LIFT_TIMEOUTS } from "./dialect.ts";
import { postgresError } from "./postgres-error.ts";

interface Session extends DatabaseConnection {
  readonly client: PoolClient;
  /** After a lost connection or an unanswered query the client is in an unknown state, and leaves the pool. */
  broken: boolean;
  /** Its transaction has lifted the time limits. */
  unlimited: boolean;
}

export interface PostgresDriverOptions {
  pool: Pool;
  label: string;
  /** The server's limit for a statement; an answer that takes much longer means that the connection is dead. */
  statementTimeoutMs: number;
}

const answerAllowanceMs = 5_000;

/** Kysely's driver over a pool of `pg`, with our errors, and without a chance for a broken client to be used again. */
export function createPostgresDriver(options: PostgresDriverOptions): Driver {
  const { pool, label } = options;
  const answerTimeoutMs = options.statementTimeoutMs + answerAllowanceMs;

  function createSession(client: PoolClient): Session {
    const session: Session = {
      client,
      broken: false,
      unlimited: false,
      async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
        if (sql === POSTGRES_LIFT_TIMEOUTS) session.unlimited = true;
        const { rows, rowCount } = await run(session, sql, parameters);
        return { rows, numAffectedRows: BigInt(rowCount ?? 0) };
      },
      // biome-ignore lint/correctness/useYield: Kysely asks for this method; neither engine has it.
      async *streamQuery() {
        throw new Error("Streaming is not supported: read page after page by a key.");
      },
    };
    return session;
  }

  async function run(session: Session, text: string, values: readonly unknown[] = []) {
    const query: QueryConfig & { query_timeout: number } = {
      text,
      values: [...values],
      query_timeout: session.unlimited ? 0 : answerTimeoutMs,
    };
    try {
      return await session.client.query(query);
    } catch (cause) {
      const error = postgresError(label, cause);
      session.broken ||= error.kind === "connection-lost" || error.kind === "unreachable";
      throw error;
    }
  }

  return {
    async init() {},
    async acquireConnection() {
      try {
        return createSession(await pool.connect());
      } catch (cause) {
        const error = postgresError(label, cause);
        // Lost before any statement of ours: nothing was written.
        if (!isDatabaseError(error, "connection-lost")) throw error;
        throw new DatabaseError("unreachable", error.message, { cause });
      }
    },
    async releaseConnection(session: Session) {
      session.client.release(session.broken);
    },
    async beginTransaction(session: Session) {
      await run(session, "begin");
    },
    async commitTransaction(session: Session) {
      // PostgreSQL answers ROLLBACK to the commit of a transaction in which a statement failed.
      const { command } = await run(session, "commit");
      if (command === "ROLLBACK") {
        throw new DatabaseError("statement", `${label}: a statement failed, so all was undone`);
      }
    },
    async rollbackTransaction(session: Session) {
      if (session.broken) return;
      try {
        await run(session, "rollback");
      } catch (error) {
        session.broken = true;
        throw error;
      }
    },
    async destroy() {
      await pool.end();
    },
  };
}
