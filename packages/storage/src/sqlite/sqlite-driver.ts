import { setTimeout as sleep } from "node:timers/promises";
import { createMutex, type Release } from "@coinslot/concurrency";
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  type QueryResult,
  SelectQueryNode,
} from "kysely";
import { DatabaseError, isDatabaseError } from "../database-error.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";

export interface SqliteDriverOptions {
  writer: SqliteConnection;
  /**
   * Serves selects outside of transactions. Without it (a database in memory) they wait for the
   * writer.
   */
  reader?: SqliteConnection | undefined;
  /** First statement of a transaction: `begin immediate` where it may write. */
  begin: "begin" | "begin immediate";
  lockTimeoutMs: number;
  /**
   * Waits for the disk after a statement outside a transaction. The caller of a transaction waits
   * itself.
   */
  sync: () => Promise<void>;
  /** Called at the end. */
  close: () => Promise<void>;
  /** Called when the writer is the last connection. */
  beforeLastClose: () => Promise<void>;
  /** Called once both connections are closed. */
  afterClose: () => Promise<void>;
}

/** Kysely's connection: here only a note whether it is inside a transaction. */
interface Session extends DatabaseConnection {
  release?: Release | undefined;
}

/**
 * Kysely's driver over two connections. A transaction holds the writer from its beginning to its
 * end, so no other query sees or joins uncommitted work. Selects outside go to the reader. A
 * write-ahead log never makes them wait, not even inside another caller's transaction function.
 */
export function createSqliteDriver(options: SqliteDriverOptions): Driver {
  const { writer, reader, begin, lockTimeoutMs, sync } = options;
  // The time limit ends the self-deadlock of a query that waits for its own transaction.
  const mutex = createMutex({
    timeoutMs: lockTimeoutMs,
    timeoutError: () =>
      new DatabaseError(
        "busy",
        `Another transaction has been writing for ${lockTimeoutMs} ms. Inside a transaction, query with the handle that it is given.`,
      ),
  });
  let isClosed = false;

  /** A transaction that the close has rolled back must not go on, statement by statement. */
  function requireOpen(): void {
    if (isClosed) throw new DatabaseError("unreachable", "The database was closed");
  }

  /**
   * Retries while another process holds the file's write lock. SQLite's own busy handler would
   * block the whole process meanwhile, so it is off.
   */
  async function untilFree<Result>(action: () => Result): Promise<Result> {
    const deadline = performance.now() + lockTimeoutMs;
    for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, 50)) {
      try {
        return action();
      } catch (error) {
        if (!isDatabaseError(error, "busy") || performance.now() > deadline) throw error;
      }
      await sleep(pauseMs);
    }
  }

  async function alone<Result>(action: () => Result): Promise<Result> {
    const release = await mutex.acquire();
    try {
      return await untilFree(action);
    } finally {
      release();
    }
  }

  function createSession(): Session {
    const session: Session = {
      async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
        if (session.release !== undefined) {
          requireOpen();
          return writer.query<Row>(query);
        }
        if (reader !== undefined && SelectQueryNode.is(query.query))
          return reader.query<Row>(query);
        const result = await alone(() => writer.query<Row>(query));
        if (!isSelect(query)) await sync();
        return result;
      },
      // biome-ignore lint/correctness/useYield: Kysely asks for this method; neither engine has it.
      async *streamQuery() {
        throw new Error("Streaming is not supported: read page after page by a key.");
      },
    };
    return session;
  }

  function end(session: Session): void {
    const release = session.release;
    session.release = undefined;
    release?.();
  }

  return {
    async init() {},
    async acquireConnection() {
      return createSession();
    },
    async releaseConnection() {},
    async beginTransaction(session: Session) {
      const release = await mutex.acquire();
      try {
        requireOpen();
        await untilFree(() => writer.exec(begin));
        session.release = release;
      } catch (error) {
        release();
        throw error;
      }
    },
    async commitTransaction(session: Session) {
      requireOpen();
      // A commit that fails leaves the lock to the rollback that Kysely sends after it.
      writer.exec("commit");
      end(session);
    },
    async rollbackTransaction(session: Session) {
      try {
        // A full disk or a failed write has rolled back already.
        if (!isClosed && writer.isTransaction) writer.exec("rollback");
      } finally {
        end(session);
      }
    },
    async destroy() {
      const release = await mutex.acquire().catch(() => undefined);
      isClosed = true;
      try {
        // It has not ended in time. Its connection would keep the file locked.
        if (release === undefined && writer.isTransaction) writer.exec("rollback");
        // A disk that fails keeps no connection open.
        await options.close().catch(() => undefined);
        reader?.close();
        // A log that stays full gets another name.
        await options.beforeLastClose().catch(() => undefined);
        writer.close();
        await options.afterClose();
      } finally {
        release?.();
      }
    },
  };
}

/** Also recognises raw SQL, whose kind Kysely does not know. */
function isSelect({ query, sql }: CompiledQuery): boolean {
  return SelectQueryNode.is(query) || /^\s*select\b/i.test(sql);
}
