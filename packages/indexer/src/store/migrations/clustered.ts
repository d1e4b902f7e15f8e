import type { Dialect } from "@coinslot/storage";
import { type CreateTableBuilder, sql } from "kysely";

/**
 * SQLite keeps rows in the order of the primary key on request, which saves an index; PostgreSQL
 * does not.
 */
export function clustered<Table extends string, Columns extends string>(
  { engine }: Dialect,
  table: CreateTableBuilder<Table, Columns>,
) {
  return engine === "sqlite" ? table.modifyEnd(sql`without rowid`) : table;
}
