import { type Expression, type Kysely, type RawBuilder, sql } from "kysely";
import type { Dialect } from "../dialect.ts";
import type { Writer } from "../writer.ts";

/** A database with an outbox. README.md beside this file lists the states, and the races. */
export interface OutboxContext<Schema> {
  readonly db: Kysely<Schema>;
  readonly write: Writer<Schema>["write"];
  readonly dialect: Dialect;
  /** The time in milliseconds, as an expression of SQL. Default: the database's clock. */
  readonly nowMs?: Expression<number> | undefined;
  /**
   * Beginning of the names of its tables. Default `outbox`. Two owners in one database have tables
   * of their own: each registers its endpoints alone.
   */
  readonly tables?: string | undefined;
}

/** A table of an outbox. */
export function tableOf(
  { tables = "outbox" }: { readonly tables?: string | undefined },
  name: "endpoints" | "subscriptions" | "events" | "deliveries",
): RawBuilder<unknown> {
  return sql.table(`${tables}_${name}`);
}

/** Claims and conclusions: a power cut that undoes them makes a duplicate, and loses nothing. */
export const forProcess = { durability: "process" } as const;

/** Time of the database, evaluated once for a statement: a condition that an index can serve. */
export function timeOf<Schema>({
  nowMs,
  dialect,
}: Pick<OutboxContext<Schema>, "nowMs" | "dialect">): RawBuilder<number> {
  return sql<number>`(select ${nowMs ?? dialect.nowMs()})`;
}

/** Whole numbers for `in`; one parameter, so that the statement stays prepared. */
export function amongNumbers({ engine }: Dialect, numbers: readonly number[]): RawBuilder<number> {
  return engine === "sqlite"
    ? sql<number>`(select value from json_each(${JSON.stringify(numbers)}))`
    : sql<number>`(select unnest(${numbers}::bigint[]))`;
}
