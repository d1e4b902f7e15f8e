import { CompiledQuery, type Insertable, type Kysely, type Transaction } from "kysely";
import { copyQuery } from "./postgres/copy-query.ts";
import { encodeCopyRows } from "./postgres/encode-copy-rows.ts";
import { sqliteAdd } from "./sqlite/sqlite-amount.js";

/**
 * Conflict resolution for a row whose key is taken. Skip it, replace these columns of the existing
 * row, or add these amounts to them, modulo 2^256.
 */
export type OnConflict<Row> =
  | "ignore"
  | { keys: readonly Column<Row>[]; replace: readonly Column<Row>[] }
  | { keys: readonly Column<Row>[]; add: readonly Column<Row>[] };

type Column<Row> = keyof Row & string;

/**
 * Bulk insert; returns the number of rows written. All rows have the columns of the first. With
 * `replace` or `add`, no two have the same key. It is not atomic by itself: call it inside a
 * transaction.
 */
export type InsertMany = <Schema, Table extends keyof Schema & string>(
  // The union lets the compiler find the schema of either.
  executor: Kysely<Schema> | Transaction<Schema>,
  table: Table,
  rows: readonly NoInfer<Insertable<Schema[Table]>>[],
  onConflict?: OnConflict<NoInfer<Insertable<Schema[Table]>>>,
) => Promise<number>;

// Larger statements gained nothing more: SQLite binds every value by itself. Powers of two, so that
// a few rows take few statements.
const sqliteRowsPerStatement = [64, 32, 16, 8, 4, 2, 1];

/** SQLite: `values (…), (…)`; only seven texts per table, so all stay prepared. */
export const insertWithValues: InsertMany = async (executor, table, rows, onConflict) => {
  const [first] = rows;
  if (first === undefined) return 0;
  const columns = Object.keys(first);
  const tuple = `(${columns.map(() => "?").join(", ")})`;
  const insert = `insert into ${quoted([table])} (${quoted(columns)}) values `;
  const conflict = conflictClause(
    onConflict,
    (column) => `${sqliteAdd}(${column}, excluded.${column})`,
  );

  const write = async (part: readonly object[]) => {
    const text = insert + Array(part.length).fill(tuple).join(", ") + conflict;
    const values: unknown[] = [];
    for (const row of part) for (const column of columns) values.push(read(row, column));
    return executor.executeQuery(CompiledQuery.raw(text, values));
  };
  let written = 0n;
  let start = 0;
  for (const size of sqliteRowsPerStatement) {
    for (; start + size <= rows.length; start += size) {
      const result = await write(rows.slice(start, start + size));
      written += result.numAffectedRows ?? 0n;
    }
  }
  return Number(written);
};

const postgresRowsPerStatement = 5_000;
/** Below this, a statement is faster: it takes one round trip less. */
const minRowsToCopy = 200;

/**
 * PostgreSQL: many rows by COPY, which takes two thirds of the server's time for them but handles
 * no conflicts. A few rows, and those that may conflict, go by a statement with one array per
 * column.
 */
export const insertWithCopyOrUnnest: InsertMany = async (executor, table, rows, onConflict) => {
  const [first] = rows;
  if (first === undefined) return 0;
  const isCopied = onConflict === undefined && rows.length >= minRowsToCopy;
  const names = Object.keys(first);
  const known = isCopied ? undefined : typesOf(executor).get(table);
  const types =
    known && names.every((name) => known.has(name))
      ? known
      : await findColumnTypes(executor, table);
  const columns = names.map((name) => ({ name, type: types.get(name) ?? "text" }));
  const into = `${quoted([table])} (${quoted(columns.map(({ name }) => name))})`;
  const arrays = columns.map(({ type }, index) => `$${index + 1}::${type}[]`).join(", ");
  const conflict = conflictClause(
    onConflict,
    (column) => `mod(${quoted([table])}.${column} + excluded.${column}, ${2n ** 256n})`,
  );

  const write = async (part: readonly object[]) => {
    if (isCopied && part.length >= minRowsToCopy) {
      const text = `copy ${into} from stdin (format binary)`;
      return executor.executeQuery(copyQuery(text, encodeCopyRows(part, columns)));
    }
    const text = `insert into ${into} select * from unnest(${arrays})${conflict}`;
    const values = columns.map(({ name }) => part.map((row) => read(row, name)));
    return executor.executeQuery(CompiledQuery.raw(text, values));
  };
  let written = 0n;
  try {
    for (let start = 0; start < rows.length; start += postgresRowsPerStatement) {
      const result = await write(rows.slice(start, start + postgresRowsPerStatement));
      written += result.numAffectedRows ?? 0n;
    }
  } catch (error) {
    typesOf(executor).delete(table);
    throw error;
  }
  return Number(written);
};

type ColumnTypes = ReadonlyMap<string, string>;

/**
 * Cache of column types for each open database, which has one adapter for all its connections. For
 * a few rows, the query for them would take longer than the write. A column's type may have changed
 * since. The values of a statement are then converted without loss, or it fails, and the types are
 * queried again. The bytes of a COPY could be read as another value, so it queries every time.
 */
const knownTypes = new WeakMap<object, Map<string, ColumnTypes>>();

function typesOf<Schema>(executor: Kysely<Schema>): Map<string, ColumnTypes> {
  const { adapter } = executor.getExecutor();
  const known = knownTypes.get(adapter) ?? new Map<string, ColumnTypes>();
  knownTypes.set(adapter, known);
  return known;
}

/** The name of each column's current type. */
async function findColumnTypes<Schema>(
  executor: Kysely<Schema>,
  table: string,
): Promise<ColumnTypes> {
  const { rows } = await executor.executeQuery<{ name: string; type: string }>(
    CompiledQuery.raw(
      `select attname as name, format_type(atttypid, null) as type from pg_attribute
       where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
      [quoted([table])],
    ),
  );
  const types = new Map(rows.map(({ name, type }) => [name, type]));
  typesOf(executor).set(table, types);
  return types;
}

/** `sumOf` writes the sum of the column in the existing and in the rejected row. */
function conflictClause<Row>(
  onConflict: OnConflict<Row> | undefined,
  sumOf: (column: string) => string,
): string {
  if (onConflict === undefined) return "";
  if (onConflict === "ignore") return " on conflict do nothing";
  const assignments =
    "add" in onConflict
      ? onConflict.add.map((name) => `${quoted([name])} = ${sumOf(quoted([name]))}`)
      : onConflict.replace.map((name) => `${quoted([name])} = excluded.${quoted([name])}`);
  return ` on conflict (${quoted(onConflict.keys)}) do update set ${assignments.join(", ")}`;
}

function quoted(identifiers: readonly string[]): string {
  return identifiers.map((name) => `"${name.replaceAll('"', '""')}"`).join(", ");
}

function read(row: object, column: string): unknown {
  const value: unknown = Reflect.get(row, column);
  return value ?? null;
}
