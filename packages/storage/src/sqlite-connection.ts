import { existsSync } from "node:fs";
import { dirname } from "node:path";
import type { CompiledQuery, QueryResult } from "kysely";
import { DatabaseError } from "./database-error.ts";
import { MEMORY_PATH } from "./database-url.ts";
import { sqliteDialect } from "./dialect.ts";
import {
  addSqliteAmounts,
  decodeSqliteAmount,
  encodeSqliteAmount,
  SQLITE_ADD,
  SQLITE_SUM,
} from "./sqlite-amount.ts";
import type {
  SqliteHandle,
  SqliteLibrary,
  SqliteStatement,
  SqliteValue,
} from "./sqlite-library.ts";

/** One open connection. Everything in it is synchronous; errors are `DatabaseError`s. */
export interface SqliteConnection {
  readonly isTransaction: boolean;
  exec(sql: string): void;
  query<Row>(query: CompiledQuery): QueryResult<Row>;
  close(): void;
}

export interface SqliteConnectionOptions {
  library: SqliteLibrary;
  path: string;
  label: string;
  readOnly: boolean;
}

// A service has some hundred texts; those that vary in length (`in (…)`) must not pile up.
const preparedStatements = 500;

/** Opens the file, creating it unless `readOnly`. Throws a `DatabaseError`. */
export function openSqliteConnection(options: SqliteConnectionOptions): SqliteConnection {
  const { label } = options;
  const handle = openFile(options);
  registerAmounts(handle);
  // Insertion order is order of last use: the first key is the one to forget.
  const prepared = new Map<string, { statement: SqliteStatement; columns: readonly string[] }>();

  function prepare(text: string) {
    const known = prepared.get(text);
    if (known !== undefined) {
      prepared.delete(text);
      prepared.set(text, known);
      return known;
    }
    const statement = handle.prepare(text);
    // As arrays, rows come in two thirds of the time that objects take, those that are made of them included.
    statement.setReturnArrays(true);
    const entry = { statement, columns: statement.columns().map(({ name }) => name) };
    prepared.set(text, entry);
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
    query<Row>({ sql, parameters }: CompiledQuery): QueryResult<Row> {
      return typed(label, () => {
        const { statement, columns } = prepare(sql);
        if (columns.length > 0) {
          const rows = statement.all(...parameters).map((values) => toRow(columns, values) as Row);
          return { rows };
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

function toRow(
  columns: readonly string[],
  values: readonly SqliteValue[],
): Record<string, SqliteValue | undefined> {
  const row: Record<string, SqliteValue | undefined> = {};
  for (const [index, column] of columns.entries()) row[column] = values[index];
  return row;
}

/** SQLite has the same words for a folder that is not there as for one that is closed to us. */
function openFile({ library, path, label, readOnly }: SqliteConnectionOptions): SqliteHandle {
  const folder = dirname(path);
  if (path !== MEMORY_PATH && !existsSync(folder))
    throw new DatabaseError("configuration", `${label}: there is no folder ${folder}`);
  return typed(label, () => new library.DatabaseSync(path, { readOnly }));
}

/** The running total is text, since @photostructure/sqlite cuts a bigint down to 64 bits. */
function registerAmounts(handle: SqliteHandle): void {
  handle.function(SQLITE_ADD, { deterministic: true }, addSqliteAmounts);
  handle.aggregate(SQLITE_SUM, {
    start: encodeSqliteAmount(0n),
    step: (total, value) =>
      typeof value === "string"
        ? encodeSqliteAmount(decodeSqliteAmount(total) + decodeSqliteAmount(value))
        : total,
    deterministic: true,
  });
}

function typed<Result>(label: string, action: () => Result): Result {
  try {
    return action();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new DatabaseError(sqliteDialect.classify(cause), `${label}: ${reason}`, { cause });
  }
}
