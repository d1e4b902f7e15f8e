import { type AliasedRawBuilder, sql } from "kysely";

/** Type of a record's member, as `dialect.types` has it. */
type RecordType = "text" | "integer" | "amount";

/**
 * Rows of the caller as a table, to join with or to update from. The statement is the same for any
 * number of rows, so it stays prepared. All rows have the members that `types` names.
 */
export type Records = <Row extends object, Alias extends string>(
  alias: Alias,
  types: { readonly [Column in keyof Row & string]: RecordType },
  rows: readonly Row[],
) => AliasedRawBuilder<Row, Alias>;

/** SQLite: one parameter, a list of lists in JSON. */
export const sqliteRecords: Records = <Row extends object, Alias extends string>(
  alias: Alias,
  types: { readonly [Column in keyof Row & string]: RecordType },
  rows: readonly Row[],
) => {
  const columns = columnsOf(types);
  const lists = JSON.stringify(rows.map((row) => columns.map((column) => row[column])));
  const members = columns.map(
    (column, index) => sql`json_extract(value, ${sql.lit(`$[${index}]`)}) as ${sql.ref(column)}`,
  );
  return sql<Row>`(select ${sql.join(members)} from json_each(${lists}))`.as(alias);
};

const postgresTypes: Readonly<Record<RecordType, string>> = {
  text: "text[]",
  integer: "bigint[]",
  amount: "numeric(78, 0)[]",
};

/** PostgreSQL: one array for each column. */
export const postgresRecords: Records = <Row extends object, Alias extends string>(
  alias: Alias,
  types: { readonly [Column in keyof Row & string]: RecordType },
  rows: readonly Row[],
) => {
  const columns = columnsOf(types);
  const arrays = columns.map(
    (column) => sql`${rows.map((row) => row[column])}::${sql.raw(postgresTypes[types[column]])}`,
  );
  const names = columns.map((column) => sql.ref(column));
  return sql<Row>`(select * from unnest(${sql.join(arrays)}) as records (${sql.join(names)}))`.as(
    alias,
  );
};

function columnsOf<Row extends object>(
  types: {
    readonly [Column in keyof Row & string]: RecordType;
  },
): (keyof Row & string)[] {
  return Object.keys(types) as (keyof Row & string)[];
}
