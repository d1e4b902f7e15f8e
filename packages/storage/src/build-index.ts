import { type Kysely, sql, type Transaction } from "kysely";
import type { Database } from "./database.ts";
import type { Dialect } from "./dialect.ts";
import { postgresLiftTimeouts } from "./postgres/postgres-dialect.ts";

/** An index over a part of a table. */
export interface TableIndex {
  name: string;
  table: string;
  /** Columns, or expressions in brackets. */
  columns: readonly string[];
  /** PostgreSQL's method. Default `btree`. */
  using?: "hash";
  /** The condition that its rows meet. Default: all rows. */
  where?: string;
  /** Name of a narrower index that it takes the place of. */
  replaces?: string;
}

/** The statement that builds an index; `concurrently` is PostgreSQL's way without a lock. */
export function createIndexStatement(index: TableIndex, way: "concurrently" | "" = ""): string {
  const { name, table, columns, using, where } = index;
  const method = using === undefined ? "" : `using ${using} `;
  const condition = where === undefined ? "" : ` where ${where}`;
  return `create index ${way} ${name} on ${table} ${method}(${columns.join(", ")})${condition}`;
}

/**
 * Builds an index on PostgreSQL beside the traffic, and drops the one that it replaces. A large
 * table takes minutes, in which writers go on. SQLite cannot, so a migration builds it there.
 *
 * ```text
 *            build ends
 *   none ───────────────► valid ──► the replaced one is dropped
 *    ▲ │
 *    │ └─ crash, cancelled ─► invalid: kept up to date by writers, and used by no statement
 *    └────────── dropped ──────────┘
 * ```
 *
 * One process builds at a time, under a lock that the server ends with its connection. The build
 * waits for transactions that began before it. A migration waits for the build, see `holdBuilds`.
 * Call it again after a fault.
 *
 * @param signal cancels the build, which leaves an invalid index
 * @returns `false` where another process is building, or migrates
 */
export async function buildIndex<Schema>(
  { dialect, kysely }: Pick<Database<Schema>, "dialect" | "kysely">,
  index: TableIndex,
  signal: AbortSignal,
): Promise<boolean> {
  if (dialect.engine === "sqlite") return true;
  const { own, replaced } = await readStates(kysely, index);
  if (own === "valid" && replaced === "none") return true;
  return kysely.connection().execute(async (connection) => {
    const { rows: locks } = await sql<{ is_free: boolean; pid: number }>`
      select pg_try_advisory_lock(${lockOf(index)}) and pg_try_advisory_lock_shared(${buildsLock})
        as is_free, pg_backend_pid() as pid
    `.execute(connection);
    const [lock] = locks;
    const unlock = () => sql`select pg_advisory_unlock_all()`.execute(connection);
    if (lock?.is_free !== true) {
      await unlock();
      return false;
    }
    const canceller = createCanceller(kysely, lock.pid, signal);
    const restore = async () => {
      // Before the connection serves others: the next statement would be cancelled in its stead.
      await canceller.stop();
      await unlock();
      await sql`reset statement_timeout`.execute(connection);
      await sql`reset lock_timeout`.execute(connection);
    };
    try {
      // The first for the driver, which then waits for the answer; the others for the server.
      await sql.raw(postgresLiftTimeouts).execute(connection);
      await sql`set statement_timeout = 0`.execute(connection);
      await sql`set lock_timeout = 0`.execute(connection);
      await build(connection, index, signal);
    } catch (error) {
      // On a lost connection it fails, too, and would hide the cause.
      await restore().catch(() => undefined);
      throw error;
    }
    await restore();
    return true;
  });
}

/** Shared by builds, and held alone by a migration. */
const buildsLock = sql`hashtextextended('coinslot:builds', 0)`;

/**
 * Keeps builds from beginning until the transaction ends. A migration that alters a table beside a
 * build waits for it. The build waits for the migration's transaction, and the table's writers for
 * both: so the transaction must end where this returns `false`.
 *
 * @returns `false` while a build runs
 */
export async function holdBuilds<Schema>(
  transaction: Transaction<Schema>,
  { engine }: Pick<Dialect, "engine">,
): Promise<boolean> {
  if (engine === "sqlite") return true;
  const { rows } = await sql<{ is_held: boolean }>`
    select pg_try_advisory_xact_lock(${buildsLock}) as is_held
  `.execute(transaction);
  return rows[0]?.is_held === true;
}

const lockOf = ({ name }: TableIndex) => sql`hashtextextended(${`coinslot:index:${name}`}, 0)`;

async function build<Schema>(
  connection: Kysely<Schema>,
  index: TableIndex,
  signal: AbortSignal,
): Promise<void> {
  const { own, replaced } = await readStates(connection, index);
  const statements = [
    ...(own === "invalid" ? [`drop index concurrently ${index.name}`] : []),
    ...(own === "valid" ? [] : [createIndexStatement(index, "concurrently")]),
    ...(replaced === "none" ? [] : [`drop index concurrently ${index.replaces}`]),
  ];
  for (const statement of statements) {
    signal.throwIfAborted();
    await sql.raw(statement).execute(connection);
  }
}

type IndexState = "none" | "valid" | "invalid";

async function readStates<Schema>(
  db: Kysely<Schema>,
  { name, replaces }: TableIndex,
): Promise<{ own: IndexState; replaced: IndexState }> {
  const { rows } = await sql<{ is_own: boolean; is_valid: boolean }>`
    select indexrelid = to_regclass(${name}) as is_own, indisvalid as is_valid
    from pg_index
    where indexrelid in (to_regclass(${name}), to_regclass(${replaces ?? name}))
  `.execute(db);
  const stateOf = (isOwn: boolean): IndexState => {
    const row = rows.find(({ is_own }) => (is_own ?? false) === isOwn);
    if (row === undefined) return "none";
    return row.is_valid ? "valid" : "invalid";
  };
  return { own: stateOf(true), replaced: stateOf(false) };
}

const cancelEveryMs = 100;

/** Cancels the statements of a connection from the signal on, until it is stopped. */
function createCanceller<Schema>(kysely: Kysely<Schema>, pid: number, signal: AbortSignal) {
  let timer: NodeJS.Timeout | undefined;
  let last: Promise<unknown> = Promise.resolve();
  // Again and again: it has no effect between two statements.
  const cancel = () => {
    last = sql`select pg_cancel_backend(${pid})`.execute(kysely).catch(() => undefined);
    timer = setTimeout(cancel, cancelEveryMs);
  };
  if (signal.aborted) cancel();
  else signal.addEventListener("abort", cancel, { once: true });
  return {
    async stop() {
      signal.removeEventListener("abort", cancel);
      clearTimeout(timer);
      await last;
    },
  };
}
