import type { DatabaseReader } from "./read-database.ts";

/**
 * The statements that make a database's present tables, indexes and triggers, in executable order.
 * Two databases with equal lists have equal schemas.
 */
export async function describeSchema(reader: DatabaseReader): Promise<string[]> {
  return reader.engine === "sqlite" ? describeSqlite(reader) : describePostgres(reader);
}

async function describeSqlite({ read }: DatabaseReader): Promise<string[]> {
  const rows = await read(`
    select sql from sqlite_master
    where sql is not null and name not like 'sqlite\\_%' escape '\\'
    order by case type when 'table' then 0 when 'index' then 1 else 2 end, name`);
  return rows.map(({ sql }) => String(sql));
}

async function describePostgres({ read }: DatabaseReader): Promise<string[]> {
  const tables = await read(`
    select c.relname as table, c.relpersistence = 'u' as unlogged,
      string_agg(format('%I %s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
        case when a.attidentity = 'a' then ' generated always as identity' else '' end,
        case when d.adbin is null then '' else ' default ' || pg_get_expr(d.adbin, d.adrelid) end,
        case when a.attnotnull then ' not null' else '' end), ', ' order by a.attnum) as columns
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
    group by c.relname, c.relpersistence order by c.relname`);
  const constraints = await read(`
    select conrelid::regclass::text as table, conname as name, pg_get_constraintdef(oid) as definition
    from pg_constraint
    where connamespace = 'public'::regnamespace and contype <> 'n' and conrelid <> 0
    order by conrelid::regclass::text, conname`);
  const indexes = await read(`
    select pg_get_indexdef(i.indexrelid) as definition
    from pg_index i join pg_class c on c.oid = i.indexrelid
    where c.relnamespace = 'public'::regnamespace
      and not exists (select 1 from pg_constraint where conindid = i.indexrelid)
    order by c.relname`);
  const functions = await read(`
    select pg_get_functiondef(p.oid) as definition from pg_proc p
    where p.pronamespace = 'public'::regnamespace order by p.proname`);
  const triggers = await read(`
    select pg_get_triggerdef(t.oid) as definition
    from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = 'public'::regnamespace and not t.tgisinternal order by t.tgname`);
  return [
    ...tables.map(
      ({ table, unlogged, columns }) =>
        `create ${unlogged === true ? "unlogged " : ""}table ${table} (${columns})`,
    ),
    ...constraints.map(
      ({ table, name, definition }) => `alter table ${table} add constraint ${name} ${definition}`,
    ),
    ...[...indexes, ...functions, ...triggers].map(({ definition }) => String(definition).trim()),
  ];
}
