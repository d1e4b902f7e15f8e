import { withDatabase } from "@coinslot/devnet";

/**
 * Fills tables of a ledger without their indexes, and builds these afterwards: of ten million rows,
 * each index is then sorted once instead of being written in random order.
 */
export async function withoutIndexes(
  url: string,
  tables: readonly string[],
  fill: () => Promise<void>,
): Promise<void> {
  const names = tables.map((name) => `'${name}'`).join(", ");
  const indexes = await withDatabase(url, async ({ engine, read, execute }) => {
    const rows = await read(
      engine === "sqlite"
        ? `select name, sql as definition from sqlite_master
           where type = 'index' and sql is not null and tbl_name in (${names})`
        : `select indexname as name, indexdef as definition from pg_indexes
           where tablename in (${names}) and indexname not in (select conname from pg_constraint)`,
    );
    for (const { name } of rows) await execute(`drop index ${name}`);
    return rows;
  });
  await fill();
  await withDatabase(url, async ({ engine, execute }) => {
    await execute(
      engine === "sqlite"
        ? "pragma synchronous = off; pragma cache_size = -524288"
        : "set maintenance_work_mem = '512MB'",
    );
    for (const { definition } of indexes) await execute(String(definition));
    await execute(engine === "sqlite" ? "pragma wal_checkpoint(truncate)" : "checkpoint");
  });
}
