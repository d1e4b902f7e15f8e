import type { Dialect } from "@coinslot/storage";
import { type Expression, type RawBuilder, type SqlBool, sql } from "kysely";

/**
 * The conditions of a page in the order of an index. Without statistics, PostgreSQL expects that a
 * range of a column has one row of 200. So does each value that is compared. It then expects fewer
 * rows than the page has, and sorts all that the range holds. Here it expects a ninth of the table:
 * it has no such guess for a range of row values, and takes `<>` for true.
 */

/** The columns of an index, but for the last, have one value; the last is in a range. */
export interface IndexRange {
  /** From the most significant one on. */
  columns: readonly string[];
  /** The values of all columns but the last. */
  equal?: readonly unknown[];
  /** The least value of the last column. */
  from: string;
  /** Above all its values. */
  before: string;
}

/** A range of an index, entered at both ends. SQLite enters it by single columns. */
export function isInRange(
  { engine }: Dialect,
  { columns, equal = [], from, before }: IndexRange,
): RawBuilder<SqlBool> {
  const refs = columns.map((column) => sql.ref(column));
  if (engine === "sqlite") {
    const last = refs.at(-1);
    const conditions = equal.map((value, index) => sql`${refs[index]} = ${value}`);
    return sql<SqlBool>`${sql.join([...conditions, sql`${last} >= ${from}`, sql`${last} < ${before}`], sql` and `)}`;
  }
  // One column alone would be compared as a column.
  const row = sql.join([...refs, sql.lit("")]);
  const at = (end: string) => sql`(${sql.join([...equal, end])}, '')`;
  return sql<SqlBool>`(${row}) >= ${at(from)} and (${row}) < ${at(before)}`;
}

/** A condition that decides on no plan: the rows of a range are read, and those that fail left. */
export function isLeftToRows(condition: Expression<SqlBool>): RawBuilder<SqlBool> {
  return sql<SqlBool>`cast((${condition}) as integer) <> 0`;
}
