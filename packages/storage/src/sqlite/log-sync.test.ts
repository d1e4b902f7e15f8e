import { rm, symlink } from "node:fs/promises";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { createSqliteUrl, openForTest } from "../testing/engines.ts";
import { createLogSync } from "./log-sync.ts";

it("log sync brings the log of an open database onto the disk, for many concurrent callers", async () => {
  const url = await createSqliteUrl();
  const { kysely } = await openForTest({ url });
  await sql`create table notes (text text)`.execute(kysely);
  const log = createLogSync({ path: url.slice("sqlite:".length), label: "Notes" });
  await Promise.all(Array.from({ length: 20 }, () => log.sync()));
  await log.close();
  // The second handle on the log is closed, without the loss of a database lock.
  await sql`insert into notes values ('still here')`.execute(kysely);
  const { rows } = await sql`select text from notes`.execute(kysely);
  expect(rows).toEqual([{ text: "still here" }]);
});

it("log sync finds the log of a database that is opened by a link, also before the file exists", async () => {
  const url = await createSqliteUrl();
  await symlink(url.slice("sqlite:".length), `${url.slice("sqlite:".length)}.link`);
  const database = await openForTest({ url: `${url}.link` });
  await database.transaction((tx) => sql`create table notes (text text)`.execute(tx));
  const { kysely } = await openForTest({ url });
  expect((await sql`select * from notes`.execute(kysely)).rows).toEqual([]);
});

it("log sync refuses a disk that has failed once", async () => {
  const url = await createSqliteUrl();
  const path = url.slice("sqlite:".length);
  const log = createLogSync({ path, label: "Notes" });
  await expect(log.sync()).rejects.toMatchObject({ kind: "connection-lost", retryable: true });
  await openForTest({ url });
  await expect(log.sync()).rejects.toThrow(
    "Notes: unknown whether the last commits are on the disk",
  );
  await log.close();
  await rm(path, { force: true });
});
