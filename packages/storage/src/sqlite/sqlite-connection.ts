import { existsSync } from "node:fs";
import { dirname } from "node:path";
import type { CompiledQuery, QueryResult } from "kysely";
import { DatabaseError } from "../database-error.ts";
import { memoryPath } from "../database-url.ts";
import { canonicalPath } from "./canonical-path.ts";
import { refuseForeignFiles } from "./refuse-foreign-files.ts";
import { selectsAll } from "./selects-all.ts";
import { addSqliteAmounts, sqliteAdd, sqliteSum, sqliteSumAggregate } from "./sqlite-amount.js";
import { sqliteDialect } from "./sqlite-dialect.ts";
import type {
  SqliteHandle,
  SqliteLibrary,
  SqliteRow,
  SqliteStatement,
  SqliteValue,
} from "./sqlite-library.ts";

/** One open connection. Everything in it is synchronous; errors are `DatabaseError`s. */
export interface SqliteConnection {
  readonly isTransaction: boolean;
  exec(sql: string): void;
  query<Result>(query: CompiledQuery): QueryResult<Result>;
  close(): void;
}

export interface SqliteConnectionOptions {
  library: SqliteLibrary;
  path: string;
  label: string;
  readOnly: boolean;
  /** Creates a file that is not there. Default `true`. */
  create?: boolean;
}

/** Values by the names of their columns. */
type Row = Record<string, SqliteValue | undefined>;

interface PreparedStatement {
  statement: SqliteStatement;
  /** Names of the columns when it was prepared; none of one that returns no rows. */
  columns: readonly string[];
  /** A row without values. To copy it costs a third of adding one column after another. */
  empty: Readonly<Row>;
  /** The statement names its columns, so that no change of the schema gives it other ones. */
  namesAreFixed: boolean;
}

// Size of the LRU cache. A service has some hundred texts; those that vary in length (`in (…)`)
// must not pile up.
const preparedStatements = 500;

/** Opens the file, creating it unless `readOnly`. Throws a `DatabaseError`. */
export function openSqliteConnection(options: SqliteConnectionOptions): SqliteConnection {
  const { label } = options;
  const handle = openFile(options);
  registerAmounts(handle);
  // LRU cache: insertion order is order of last use, and the first key is evicted.
  const prepared = new Map<string, PreparedStatement>();

  function prepare(query: CompiledQuery): PreparedStatement {
    const known = prepared.get(query.sql);
    if (known !== undefined) {
      prepared.delete(query.sql);
      prepared.set(query.sql, known);
      return known;
    }
    const statement = handle.prepare(query.sql);
    const columns = statement.columns().map(({ name }) => name);
    // Arrays take half the time of objects, with the names read once. The names behind a `*` follow
    // the schema, which another program may change. Only objects carry the current names.
    const namesAreFixed = !selectsAll(query);
    statement.setReturnArrays(namesAreFixed);
    const empty = Object.fromEntries(columns.map((column) => [column, undefined]));
    const entry = { statement, columns, empty, namesAreFixed };
    prepared.set(query.sql, entry);
    for (const oldest of prepared.keys()) {
      if (prepared.size <= preparedStatements) break;
      prepared.delete(oldest);
    }
    return entry;
  }

  return {
    get isTransaction() {
      return handle.isTransaction;
    },
    exec: (sql) => typed(label, () => handle.exec(sql)),
    query<Result>(query: CompiledQuery): QueryResult<Result> {
      const { parameters } = query;
      return typed(label, () => {
        const entry = prepare(query);
        const { statement, columns, namesAreFixed } = entry;
        if (columns.length > 0) {
          const found = namesAreFixed
            ? statement.all(...parameters)
            : allWithCurrentNames(statement, parameters);
          return { rows: found.map((values) => toRow(entry, values) as Result) };
        }
        const { changes, lastInsertRowid } = statement.run(...parameters);
        return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
      });
    },
    close() {
      prepared.clear();
      handle.close();
    },
  };
}

/**
 * On Node 22, `all` takes the names before the statement's first step, in which SQLite notices a
 * changed schema. An added column is missing, and a dropped one is an error. An iterator takes them
 * after it.
 */
function allWithCurrentNames(
  statement: SqliteStatement,
  parameters: readonly unknown[],
): SqliteRow[] {
  const rows = statement.iterate(...parameters);
  try {
    return [...rows];
  } finally {
    // A row that cannot be read must not leave the statement open: its transaction could not end.
    rows.return?.();
  }
}

function toRow({ columns, empty }: PreparedStatement, values: SqliteRow): Row {
  if (!Array.isArray(values)) return values;
  const row: Row = { ...empty };
  for (let index = 0; index < columns.length; index += 1) {
    row[columns[index] ?? ""] = values[index];
  }
  return row;
}

/** SQLite's message for a missing folder is the same as for one without access. */
function openFile(options: SqliteConnectionOptions): SqliteHandle {
  const { library, path, label, readOnly, create = true } = options;
  const folder = dirname(path);
  if (path !== memoryPath && !existsSync(folder))
    throw new DatabaseError("configuration", `${label}: the folder ${folder} does not exist`);
  if (!create && path !== memoryPath && !existsSync(path))
    throw new DatabaseError("configuration", `${label}: the file does not exist`);
  if (path === memoryPath) return typed(label, () => new library.DatabaseSync(path, { readOnly }));
  // What is looked at is what is opened. It is absolute, so that SQLite reads no `file:` URI.
  const file = canonicalPath(path);
  refuseForeignFiles({ file, label, readOnly });
  return typed(label, () => new library.DatabaseSync(file, { readOnly }));
}

function registerAmounts(handle: SqliteHandle): void {
  handle.function(sqliteAdd, { deterministic: true }, addSqliteAmounts);
  handle.aggregate(sqliteSum, sqliteSumAggregate);
}

function typed<Result>(label: string, action: () => Result): Result {
  try {
    return action();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new DatabaseError(sqliteDialect.classify(cause), `${label}: ${reason}`, { cause });
  }
}
