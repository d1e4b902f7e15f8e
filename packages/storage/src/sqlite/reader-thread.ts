import { Worker } from "node:worker_threads";
import { createMutex, type Release } from "@coinslot/concurrency";
import type { CompiledQuery, DatabaseConnection, Driver, QueryResult } from "kysely";
import { DatabaseError } from "../database-error.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";

export interface ReaderThreadOptions {
  path: string;
  label: string;
  /** Settings of its connection. */
  pragmas: string;
  /** True if the library is Node's own. */
  isBuiltIn: boolean;
}

const programName = "./reader-worker.js";

/** A connection in a thread of its own, which only reads. */
interface ReaderThread {
  query(query: Pick<CompiledQuery, "sql" | "parameters">): Promise<unknown[]>;
  /** True if the thread has ended by itself, for example out of memory. Every query rejects. */
  hasEnded(): boolean;
  close(): Promise<void>;
}

interface Answer {
  id: number;
  rows?: unknown[];
  error?: { message: string; errcode?: unknown };
}

/** One question under way. */
interface Asked {
  resolve(rows: unknown[]): void;
  reject(error: unknown): void;
}

/**
 * Kysely's driver over a thread that reads. One caller has the connection at a time, for one query
 * or one transaction. So a transaction sees one moment of the file.
 *
 * A thread that has ended rejects its queries. The next caller gets a new one.
 *
 * @param restart starts a thread as `first` was started
 */
export function createReaderDriver(
  first: ReaderThread,
  restart: () => Promise<ReaderThread | undefined>,
): Driver {
  let thread = first;
  const mutex = createMutex();
  const held = new WeakMap<DatabaseConnection, Release>();
  const run = (sql: string) => thread.query({ sql, parameters: [] });
  return {
    async init() {},
    async acquireConnection() {
      const release = await mutex.acquire();
      try {
        if (thread.hasEnded()) thread = (await restart()) ?? thread;
      } catch (error) {
        release();
        throw error;
      }
      const connection: DatabaseConnection = {
        executeQuery: async <Row>(query: CompiledQuery): Promise<QueryResult<Row>> => ({
          rows: (await thread.query(query)) as Row[],
        }),
        // biome-ignore lint/correctness/useYield: Kysely asks for this method; neither engine has it.
        async *streamQuery() {
          throw new Error("Streaming is not supported: read page after page by a key.");
        },
      };
      held.set(connection, release);
      return connection;
    },
    async releaseConnection(connection) {
      held.get(connection)?.();
    },
    async beginTransaction() {
      await run("begin");
    },
    async commitTransaction() {
      await run("commit");
    },
    async rollbackTransaction() {
      await run("rollback");
    },
    destroy: () => mutex.run(() => thread.close()),
  };
}

/**
 * Starts the thread. It keeps no process alive.
 *
 * @returns `undefined` if the thread's program is missing
 * @throws DatabaseError if the file cannot be opened
 */
export async function startReaderThread(
  options: ReaderThreadOptions & { program?: URL },
): Promise<ReaderThread | undefined> {
  const { label, program = findProgram(), ...workerData } = options;
  if (program === undefined) return undefined;
  const worker = new Worker(program, { workerData });
  const asked = new Map<number, Asked>();
  let lastId = 0;
  let end: DatabaseError | undefined;

  function endAll(cause: unknown): void {
    const reason = cause instanceof Error ? cause.message : "the thread ended";
    end ??= new DatabaseError(sqliteDialect.classify(cause), `${label}: ${reason}`, { cause });
    for (const { reject } of asked.values()) reject(end);
    asked.clear();
    worker.unref();
  }
  const started = ask(0);
  worker.on("message", ({ id, rows = [], error }: Answer) => {
    const question = asked.get(id);
    asked.delete(id);
    // A process with nothing else to do waits for an answer, and not for a question.
    if (asked.size === 0) worker.unref();
    if (error === undefined) return question?.resolve(rows);
    const kind = sqliteDialect.classify(error);
    question?.reject(new DatabaseError(kind, `${label}: ${error.message}`, { cause: error }));
  });
  worker.on("error", endAll);
  worker.on("exit", endAll);

  function ask(id: number): Promise<unknown[]> {
    return new Promise((resolve, reject) => {
      if (end !== undefined) return reject(end);
      asked.set(id, { resolve, reject });
      worker.ref();
    });
  }

  try {
    await started;
  } catch (error) {
    if (isProgramMissing(error)) return undefined;
    throw error;
  }
  return {
    query({ sql, parameters }) {
      lastId += 1;
      const answered = ask(lastId);
      if (end === undefined) worker.postMessage({ id: lastId, sql, parameters });
      return answered;
    },
    hasEnded: () => end !== undefined,
    async close() {
      await worker.terminate();
    },
  };
}

/** A CommonJS bundle has no place of its own: there `import.meta.url` is `undefined`. */
function findProgram(): URL | undefined {
  const place = import.meta.url;
  return URL.canParse(programName, place) ? new URL(programName, place) : undefined;
}

function isProgramMissing(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  return code === "MODULE_NOT_FOUND" || code === "ERR_MODULE_NOT_FOUND";
}
