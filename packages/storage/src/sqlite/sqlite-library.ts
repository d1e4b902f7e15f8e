/** A value that SQLite returns. Integers beyond 2^53 are never rounded: reading them throws. */
export type SqliteValue = null | number | bigint | string | Uint8Array;

/** The part of `node:sqlite` that is used here, in the form both implementations share. */
export interface SqliteLibrary {
  DatabaseSync: new (path: string, options?: { readOnly?: boolean }) => SqliteHandle;
}

export interface SqliteHandle {
  readonly isTransaction: boolean;
  exec(sql: string): void;
  prepare(sql: string): SqliteStatement;
  function(
    name: string,
    options: { deterministic: boolean },
    call: (...texts: string[]) => string,
  ): void;
  aggregate(name: string, options: SqliteAggregate): void;
  close(): void;
}

export interface SqliteStatement {
  columns(): readonly { name: string }[];
  setReturnArrays(enabled: boolean): void;
  all(...parameters: unknown[]): SqliteRow[];
  iterate(...parameters: unknown[]): IterableIterator<SqliteRow>;
  run(...parameters: unknown[]): {
    changes: number | bigint;
    lastInsertRowid: number | bigint;
  };
}

/** With `setReturnArrays` the values of the columns, else an object by their names. */
export type SqliteRow = SqliteValue[] | Record<string, SqliteValue>;

interface SqliteAggregate {
  start: string;
  step: (total: string, value: SqliteValue) => string;
  deterministic?: boolean;
}

/**
 * `node:sqlite` where Node has it built in, with aggregates (22.16 and 24 on). Otherwise the same
 * interface from `@photostructure/sqlite`, whose binaries come with the package.
 */
export async function loadSqlite(): Promise<SqliteLibrary> {
  return builtInSqlite() ?? (await import("@photostructure/sqlite"));
}

/** `node:sqlite`, where it is complete. */
export function builtInSqlite(): SqliteLibrary | undefined {
  const builtIn: unknown = process.getBuiltinModule("node:sqlite");
  return isComplete(builtIn) ? builtIn : undefined;
}

function isComplete(library: unknown): library is SqliteLibrary {
  if (typeof library !== "object" || library === null || !("DatabaseSync" in library)) return false;
  const { DatabaseSync } = library;
  return typeof DatabaseSync === "function" && "aggregate" in DatabaseSync.prototype;
}
