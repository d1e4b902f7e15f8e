import { describeSchema } from "./describe-schema.ts";
import { type DatabaseReader, withDatabase } from "./read-database.ts";

/**
 * A database as SQL statements, one a line: its schema, then all rows. Read back with
 * `restoreDatabase`.
 */
export async function dumpDatabase(url: string): Promise<string> {
  return withDatabase(url, async (reader) => {
    const lines = [...(await describeSchema(reader))];
    for (const table of await listTables(reader)) {
      const rows = await reader.read(`select * from ${table}`);
      const inserts = rows.map((row) => insertRow(reader.engine, table, row));
      lines.push(...inserts.sort(), ...(await continueCounting(reader, table)));
    }
    return `${lines.map((line) => `${line.replaceAll(/\s*\n\s*/g, " ")};`).join("\n")}\n`;
  });
}

/** Fills an empty database with the output of `dumpDatabase` for one of the same engine. */
export async function restoreDatabase(url: string, dump: string): Promise<void> {
  await withDatabase(url, ({ execute }) => execute(dump));
}

async function listTables({ engine, read }: DatabaseReader): Promise<string[]> {
  const rows = await read(
    engine === "sqlite"
      ? "select name from sqlite_master where type = 'table' and name not like 'sqlite\\_%' escape '\\' order by name"
      : "select tablename as name from pg_tables where schemaname = 'public' order by tablename",
  );
  return rows.map(({ name }) => String(name));
}

/** PostgreSQL's identity columns do not count rows that were inserted with an explicit value. */
async function continueCounting({ engine, read }: DatabaseReader, table: string) {
  if (engine === "sqlite") return [];
  const columns = await read(`
    select attname as name from pg_attribute
    where attrelid = '${table}'::regclass and attidentity <> '' order by attnum`);
  return columns.map(
    ({ name }) =>
      `select setval(pg_get_serial_sequence('${table}', '${name}'), max(${name})) from ${table}`,
  );
}

function insertRow(
  engine: DatabaseReader["engine"],
  table: string,
  row: Record<string, unknown>,
): string {
  const columns = Object.keys(row);
  const values = columns.map((column) => literal(engine, row[column]));
  // An identity column takes an explicit value only by this clause.
  const overriding = engine === "postgres" ? " overriding system value" : "";
  return `insert into ${table} (${columns.join(", ")})${overriding} values (${values.join(", ")})`;
}

function literal(engine: DatabaseReader["engine"], value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  if (value instanceof Uint8Array) {
    const hex = Buffer.from(value).toString("hex");
    return engine === "sqlite" ? `x'${hex}'` : `'\\x${hex}'`;
  }
  if (typeof value === "string") return `'${value.replaceAll("'", "''")}'`;
  throw new TypeError(`A column holds ${typeof value}, which has no literal.`);
}
