import { sql, type Transaction } from "kysely";
import { describe, expect, it } from "vitest";
import type { Database } from "./database.ts";
import { migrate } from "./migrate.ts";
import { createPostgresUrl, openForTest } from "./testing/engines.ts";
import { type CounterSchema, counterMigrations } from "./testing/schema.ts";
import { startTcpProxy } from "./testing/tcp-proxy.ts";

const insert = ({ kysely }: Database<CounterSchema>, id: number) =>
  kysely.insertInto("counters").values({ id, value: id }).execute();

async function openThroughProxy() {
  const target = await createPostgresUrl();
  const proxy = await startTcpProxy(target);
  const database = await openForTest<CounterSchema>({ url: proxy.url });
  await migrate(database, { name: "counters", migrations: counterMigrations });
  const direct = await openForTest<CounterSchema>({ url: target });
  return { database, direct, proxy, target };
}

describe("a PostgreSQL server that fails", () => {
  it("fails the next query when connections were idle, and is used again when it is back", async () => {
    const { database, direct, proxy } = await openThroughProxy();
    await Promise.all([insert(database, 1), insert(database, 2), insert(database, 3)]);
    await proxy.cut();
    await expect(insert(database, 4)).rejects.toMatchObject({ retryable: true });
    await proxy.mend();
    await insertInTransaction(database, 5);
    const rows = await direct.kysely.selectFrom("counters").select("id").orderBy("id").execute();
    expect(rows).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }, { id: 5 }]);
  });

  it("rolls a transaction back in its middle, and reports so", async () => {
    const { database, direct, proxy } = await openThroughProxy();
    await expect(
      database.transaction(async (tx) => {
        await tx.insertInto("counters").values({ id: 1, value: 1 }).execute();
        await proxy.cut();
        await tx.insertInto("counters").values({ id: 2, value: 2 }).execute();
      }),
    ).rejects.toMatchObject({ kind: "unreachable", retryable: true });
    await proxy.mend();
    await insert(database, 3);
    const rows = await direct.kysely.selectFrom("counters").select("id").execute();
    expect(rows).toEqual([{ id: 3 }]);
  });

  it("is reported as such during a commit: the outcome is unknown", async () => {
    const { database, direct, proxy } = await openThroughProxy();
    // A trigger that runs at the commit holds it until the connection is cut.
    await sql`create function wait_at_commit() returns trigger language plpgsql as $$
      begin perform pg_advisory_xact_lock(1); return null; end $$`.execute(direct.kysely);
    await sql`create constraint trigger wait_at_commit after insert on counters
      deferrable initially deferred for each row execute function wait_at_commit()`.execute(
      direct.kysely,
    );
    await direct.transaction(async (tx) => {
      await sql`select pg_advisory_xact_lock(1)`.execute(tx);
      const written = insertInTransaction(database, 1);
      await expect.poll(() => waitingForLocks(tx)).toBe(1);
      await proxy.cut();
      await expect(written).rejects.toMatchObject({ kind: "connection-lost", retryable: true });
    });
  });

  it("silently times out, and its connections are not reused", async () => {
    const { target, proxy } = await openThroughProxy();
    const database = await openForTest<CounterSchema>({
      url: proxy.url,
      statementTimeoutMs: 1_000,
    });
    await insert(database, 1);
    proxy.freeze();
    await expect(insert(database, 2)).rejects.toMatchObject({ kind: "connection-lost" });
    await insert(database, 3);
    const direct = await openForTest<CounterSchema>({ url: target });
    const rows = await direct.kysely.selectFrom("counters").select("id").orderBy("id").execute();
    expect(rows).toEqual([{ id: 1 }, { id: 3 }]);
  });

  it("silently on all connections at once times out once, not per connection", async () => {
    const { proxy } = await openThroughProxy();
    const database = await openForTest<CounterSchema>({
      url: proxy.url,
      statementTimeoutMs: 1_000,
    });
    await Promise.all([1, 2, 3, 4].map((id) => insert(database, id)));
    proxy.freeze();
    const start = performance.now();
    await expect(insertInTransaction(database, 5)).rejects.toMatchObject({ kind: "unreachable" });
    expect(performance.now() - start).toBeLessThan(30_000);
  });

  it("right after it has accepted a connection times out too", async () => {
    const { proxy } = await openThroughProxy();
    const database = await openForTest<CounterSchema>({ url: proxy.url, connectTimeoutMs: 2_000 });
    proxy.freezeAt("synchronous_commit");
    await database.transaction(async () => {
      // The one connection that is open is in use.
      await expect(insert(database, 1)).rejects.toMatchObject({ kind: "unreachable" });
      await insert(database, 2);
    });
  });

  it("is left for the new primary where it has become a read-only replica", async () => {
    const url = await createPostgresUrl();
    const database = await openForTest<CounterSchema>({ url });
    await migrate(database, { name: "counters", migrations: counterMigrations });
    const administrator = await openForTest<CounterSchema>({ url });
    const setReadOnly = (isReadOnly: boolean) =>
      sql`do $$ begin execute format(
      'alter database %I set default_transaction_read_only = ${sql.raw(String(isReadOnly))}', current_database());
      end $$`.execute(administrator.kysely);
    await setReadOnly(true);
    const moved = await openForTest<CounterSchema>({ url, poolSize: 1 });
    await setReadOnly(false);
    await expect(insert(moved, 1)).rejects.toMatchObject({ kind: "unreachable", retryable: true });
    await insert(moved, 2);
    await insertInTransaction(moved, 3);
  });

  it("does not end the process by ending an idle connection, or one between two statements", async () => {
    const { database, direct } = await openThroughProxy();
    const terminateOthers = () =>
      sql`select pg_terminate_backend(pid, 5000) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()`.execute(direct.kysely);
    await insert(database, 1);
    await terminateOthers();
    await expect(
      database.transaction(async (tx) => {
        await tx.insertInto("counters").values({ id: 2, value: 2 }).execute();
        await terminateOthers();
        await tx.insertInto("counters").values({ id: 3, value: 3 }).execute();
      }),
    ).rejects.toMatchObject({ kind: "unreachable" });
    await insert(database, 4);
    const rows = await direct.kysely.selectFrom("counters").select("id").orderBy("id").execute();
    expect(rows).toEqual([{ id: 1 }, { id: 4 }]);
  });
});

function insertInTransaction(database: Database<CounterSchema>, id: number): Promise<unknown> {
  return database.transaction((tx) =>
    tx.insertInto("counters").values({ id, value: id }).execute(),
  );
}

async function waitingForLocks(tx: Transaction<CounterSchema>): Promise<number> {
  const { rows } = await sql`
    select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
  `.execute(tx);
  return rows.length;
}
