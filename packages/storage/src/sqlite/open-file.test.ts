import { readdir, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { setImmediate } from "node:timers/promises";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { openDatabase } from "../database.ts";
import { createSqliteUrl, openForTest } from "../testing/engines.ts";

/** A file with so many notes that its log holds pages of its tables, and a backup of its first. */
async function writeBeyondBackup() {
  const url = await createSqliteUrl();
  const path = url.slice("sqlite:".length);
  const database = await openForTest<object>({ url });
  await sql`create table notes (id integer primary key, text text unique)`.execute(database.kysely);
  await sql`insert into notes values (0, 'the first')`.execute(database.kysely);
  await sql`vacuum into ${`${path}.backup`}`.execute(database.kysely);
  await sql`with recursive ids(id) as (select 1 union all select id + 1 from ids where id < 200)
    insert into notes select id, hex(zeroblob(100)) || id from ids`.execute(database.kysely);
  return { url, path, backup: `${path}.backup`, database };
}

it("an open file that another one has taken the place of is named", async () => {
  const { path, backup, database } = await writeBeyondBackup();
  await expect(database.verify()).resolves.toBeUndefined();
  await rename(backup, path);
  await expect(database.verify()).rejects.toMatchObject({
    kind: "file-replaced",
    message: expect.stringContaining("was replaced by another one while it was open"),
  });
});

it("an open file that was moved away is named, and none is created in its place", async () => {
  const { url, path, database } = await writeBeyondBackup();
  await rename(path, `${path}.moved`);
  await expect(database.verify()).rejects.toMatchObject({
    kind: "file-replaced",
    message: expect.stringContaining("was moved or deleted while it was open"),
  });
  await expect(openDatabase({ url, create: false })).rejects.toMatchObject({
    kind: "configuration",
    message: expect.stringContaining("the file does not exist"),
  });
});

it("the log of a replaced file goes into that file, and not into the one in its place", async () => {
  const { url, path, backup, database } = await writeBeyondBackup();
  await rename(path, `${path}.moved`);
  await rename(backup, path);
  await database.close();
  expect(await contentOf(url)).toEqual({ notes: 1, integrity: "ok" });
  expect(await contentOf(`${url}.moved`)).toEqual({ notes: 201, integrity: "ok" });
});

it("a log that a reader keeps from being emptied is set aside", async () => {
  const { url, path, backup, database } = await writeBeyondBackup();
  const reader = await openForTest<object>({ url, readOnly: true });
  await reader.transaction(async (tx) => {
    await sql`select count(*) from notes`.execute(tx);
    await sql`insert into notes values (1000, 'the last')`.execute(database.kysely);
    await rename(path, `${path}.moved`);
    await rename(backup, path);
    await database.close();
  });
  const names = await readdir(dirname(path));
  expect(names.filter((name) => name.includes("-wal.replaced-"))).toHaveLength(1);
  await reader.close();
  expect(await contentOf(url)).toEqual({ notes: 1, integrity: "ok" });
});

it("a database whose disk has failed once is named, until it is opened anew", async () => {
  const url = await createSqliteUrl();
  const path = url.slice("sqlite:".length);
  const database = await openForTest<object>({ url });
  const table = sql`create table notes (id integer)`;
  await database.transaction((tx) => table.execute(tx), { durability: "process" });
  await expect(database.verify()).resolves.toBeUndefined();
  // The first durable write finds no log to bring onto the disk.
  await rename(`${path}-wal`, `${path}-wal.moved`);
  const write = sql`insert into notes values (1)`.execute(database.kysely);
  await expect(write).rejects.toMatchObject({ kind: "connection-lost" });
  await rename(`${path}-wal.moved`, `${path}-wal`);
  await expect(database.verify()).rejects.toMatchObject({
    kind: "connection-lost",
    message: expect.stringContaining("unknown whether the last commits are on the disk"),
  });
  await database.close();
  const again = await openForTest<object>({ url });
  await expect(again.verify()).resolves.toBeUndefined();
  await sql`insert into notes values (2)`.execute(again.kysely);
});

it("a log that was deleted beside its open file is named, and emptied into the file by the close", async () => {
  const { url, path, database } = await writeBeyondBackup();
  await expect(database.verify()).resolves.toBeUndefined();
  await rm(`${path}-wal`);
  await expect(database.verify()).rejects.toMatchObject({
    kind: "file-replaced",
    message: expect.stringContaining("its write-ahead log was moved or deleted"),
  });
  await database.close();
  expect(await contentOf(url)).toEqual({ notes: 201, integrity: "ok" });
});

it("a transaction that never ends does not keep a database open", async () => {
  const url = await createSqliteUrl();
  const database = await openForTest<object>({ url, lockTimeoutMs: 20 });
  await sql`create table notes (id integer)`.execute(database.kysely);
  await new Promise<void>((begun) => {
    void database.transaction(async (tx) => {
      await sql`insert into notes values (1)`.execute(tx);
      begun();
      await new Promise(() => undefined);
    });
  });
  await database.close();
  const again = await openForTest<object>({ url });
  await sql`insert into notes values (2)`.execute(again.kysely);
  const { rows } = await sql`select id from notes`.execute(again.kysely);
  expect(rows).toEqual([{ id: 2 }]);
});

it("a transaction that goes on beside the close that has ended it leaves nothing behind", async () => {
  const url = await createSqliteUrl();
  const database = await openForTest<object>({ url, lockTimeoutMs: 20 });
  await sql`create table notes (id integer)`.execute(database.kysely);
  const written = database.transaction(async (tx) => {
    for (;;) {
      await sql`insert into notes values (1)`.execute(tx);
      await setImmediate();
    }
  });
  const refused = expect(written).rejects.toMatchObject({
    kind: "unreachable",
    message: "The database was closed",
  });
  await database.close();
  await refused;
  const again = await openForTest<object>({ url });
  const { rows } = await sql`select id from notes`.execute(again.kysely);
  expect(rows).toEqual([]);
});

async function contentOf(url: string): Promise<{ notes: unknown; integrity: unknown }> {
  const { kysely } = await openForTest<object>({ url });
  const counted = await sql<{ notes: number }>`select count(*) as notes from notes`.execute(kysely);
  const checked = await sql<{ integrity_check: string }>`pragma integrity_check`.execute(kysely);
  return { notes: counted.rows[0]?.notes, integrity: checked.rows[0]?.integrity_check };
}
