import { type AliasedRawBuilder, type Kysely, type Selectable, sql } from "kysely";

/**
 * The rows of a table with one of these sets of texts in their columns, each row once, for
 * `selectFrom`. The caller compares again: SQLite also returns those that share the first text
 * alone. At least one set, and all have the columns of the first, which an index begins with.
 *
 * For columns whose texts are not unique. PostgreSQL without statistics expects many rows for each
 * text of a list, and reads the whole table for it. So each set is looked up by itself. Name all
 * columns of the index that are known: the more there are, the fewer rows it expects.
 */
export type RowsWith = <Schema, Table extends keyof Schema & string>(
  executor: Kysely<Schema>,
  table: Table,
  sets: Sets<Schema[Table]>,
) => AliasedRawBuilder<Selectable<Schema[Table]>, Table>;

type Sets<Row> = readonly { readonly [Column in keyof Row & string]?: string }[];

/**
 * One parameter, as with `among`: the statement is the same for any number of sets. It needs no
 * statistics for a list, and to compare the other columns would take longer than to return them.
 */
export function sqliteRowsWith<Schema, Table extends keyof Schema & string>(
  _: Kysely<Schema>,
  table: Table,
  sets: Sets<Schema[Table]>,
) {
  const { columns, rows } = distinct(sets);
  const [first = ""] = columns;
  const texts = JSON.stringify(rows.map(([text]) => text));
  return sql<Selectable<Schema[Table]>>`(
    select * from ${sql.table(table)}
    where ${sql.ref(first)} in (select value from json_each(${texts}))
  )`.as(table);
}

/** `offset 0` keeps the planner from joining the whole table with the list of sets. */
export function postgresRowsWith<Schema, Table extends keyof Schema & string>(
  _: Kysely<Schema>,
  table: Table,
  sets: Sets<Schema[Table]>,
) {
  const { columns, rows } = distinct(sets);
  const arrays = columns.map((_, index) => sql`${rows.map((row) => row[index])}::text[]`);
  const names = columns.map((column) => sql.ref(column));
  const equal = columns.map((column) => sql`found.${sql.ref(column)} = wanted.${sql.ref(column)}`);
  return sql<Selectable<Schema[Table]>>`(
    select found.* from unnest(${sql.join(arrays)}) as wanted (${sql.join(names)})
    cross join lateral (
      select * from ${sql.table(table)} as found where ${sql.join(equal, sql` and `)} offset 0
    ) as found
  )`.as(table);
}

/** Each set once, as texts in the order of the columns. */
function distinct(sets: readonly { readonly [column: string]: string | undefined }[]) {
  const columns = Object.keys(sets[0] ?? {});
  const rows = new Map<string, (string | undefined)[]>();
  for (const set of sets) {
    const row = columns.map((column) => set[column]);
    rows.set(JSON.stringify(row), row);
  }
  return { columns, rows: [...rows.values()] };
}
