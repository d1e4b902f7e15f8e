import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { link, mkdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { superJournalOf } from "@coinslot/devnet";
import { useProgram } from "@coinslot/devnet/use-program";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { openDatabase } from "../database.ts";
import { migrate } from "../migrate.ts";
import { createSqliteUrl, openForTest } from "../testing/engines.ts";
import { killTestProcess, nextMessage, startTestProcess, testProgram } from "../testing/process.ts";
import { type CounterSchema, counterMigrations } from "../testing/schema.ts";
import { databaseFileOf, lockDatabaseFile } from "./lock-file.ts";

const program = useProgram(testProgram);

describe("the lock of a database file", () => {
  it("is held by one process until it is killed, and another is refused with an error", async () => {
    const url = await createSqliteUrl();
    const owner = startTestProcess(program(), "lock", url);
    expect(await nextMessage(owner)).toBe("done");

    const second = startTestProcess(program(), "lock", url);
    expect(await nextMessage(second)).toMatch(
      /^file-locked: Another process works on .*test\.db .*test\.db\.lock/,
    );
    await killTestProcess(owner);

    const lock = await lockDatabaseFile(url);
    lock?.release();
    expect(lock).toBeDefined();
  });

  it("is held once within a process too, under any name of the file", async () => {
    const url = await createSqliteUrl();
    const path = url.slice("sqlite:".length);
    await openForTest({ url });
    await symlink(path, `${path}.link`);
    const lock = await lockDatabaseFile(url);
    await expect(lockDatabaseFile(`${url}.link`)).rejects.toMatchObject({ kind: "file-locked" });
    lock?.release();
    (await lockDatabaseFile(`${url}.link`))?.release();
  });

  it("is the same for a link to a file that does not exist yet", async () => {
    const url = await createSqliteUrl();
    const path = url.slice("sqlite:".length);
    await symlink("test.db", `${path}.link`);
    await symlink("test.db.link", `${path}.far`);
    const lock = await lockDatabaseFile(`${url}.far`);
    await openForTest({ url: `${url}.far` });
    await expect(lockDatabaseFile(url)).rejects.toMatchObject({ kind: "file-locked" });
    lock?.release();
  });

  it("is refused while the file has a second name of its own, which would be a second lock", async () => {
    const url = await createSqliteUrl();
    const path = url.slice("sqlite:".length);
    await openForTest({ url });
    await link(path, `${path}.twin`);
    for (const each of [url, `${url}.twin`]) {
      await expect(lockDatabaseFile(each)).rejects.toMatchObject({
        kind: "configuration",
        message: expect.stringContaining("2 names (hard links)"),
      });
    }
    await rm(`${path}.twin`);
    (await lockDatabaseFile(url))?.release();
  });

  it("is refused where it, or the file, is a pipe or a folder, which is not opened", async () => {
    const error = { kind: "configuration", message: expect.stringContaining("not a regular file") };
    const url = await createSqliteUrl();
    const path = url.slice("sqlite:".length);
    execFileSync("mkfifo", [path]);
    for (const readOnly of [false, true])
      await expect(openDatabase({ url, readOnly })).rejects.toMatchObject(error);
    await rm(path);
    await mkdir(path);
    await expect(openDatabase({ url })).rejects.toMatchObject(error);
    await rm(path, { recursive: true });
    execFileSync("mkfifo", [`${path}.lock`]);
    await expect(lockDatabaseFile(url)).rejects.toMatchObject(error);
  });

  it("is refused where it is not empty, since it may name a journal that deletes another file", async () => {
    const url = await createSqliteUrl();
    const path = url.slice("sqlite:".length);
    const victim = join(dirname(path), "victim");
    await writeFile(victim, "kept");
    await writeFile(`${path}.lock`, "xx");
    await writeFile(`${path}.lock-journal`, superJournalOf(victim));
    const error = { kind: "configuration", message: expect.stringContaining("is not empty") };
    await expect(lockDatabaseFile(url)).rejects.toMatchObject(error);
    expect(await readFile(victim, "utf8")).toBe("kept");
    // To SQLite, a file of one byte is an empty one.
    await writeFile(`${path}.lock`, "S");
    await rm(`${path}.lock-journal`);
    (await lockDatabaseFile(url))?.release();
  });

  it("is refused where it is a link, which leads to another program's file", async () => {
    const url = await createSqliteUrl();
    const path = url.slice("sqlite:".length);
    await symlink("test.db.elsewhere", `${path}.lock`);
    await expect(lockDatabaseFile(url)).rejects.toMatchObject({ kind: "configuration" });
    expect(existsSync(`${path}.elsewhere`)).toBe(false);
  });

  it("is refused where the file's journal names a file that SQLite would delete", async () => {
    const url = await createSqliteUrl();
    const path = url.slice("sqlite:".length);
    const victim = join(dirname(path), "victim");
    await writeFile(victim, "kept");
    const { kysely } = await openForTest({ url: "sqlite::memory:" });
    await sql`create table notes (id integer)`.execute(kysely);
    await sql`vacuum into ${path}`.execute(kysely);
    await symlink("test.db", `${path}.link`);
    const journal = superJournalOf(victim);
    await writeFile(`${path}-journal`, journal);
    const error = { kind: "configuration", message: expect.stringContaining("test.db-journal") };
    for (const each of [url, `${url}.link`])
      await expect(openDatabase({ url: each })).rejects.toMatchObject(error);
    expect(await readFile(victim, "utf8")).toBe("kept");
    expect(await readFile(`${path}-journal`)).toEqual(journal);
  });

  it.each(["-journal", "-wal", "-shm"])(
    "is refused where the file's %s has another name, into which SQLite would write",
    async (suffix) => {
      const url = await createSqliteUrl();
      const path = url.slice("sqlite:".length);
      await writeFile(path, "");
      await writeFile(`${path}.other`, "kept");
      await link(`${path}.other`, path + suffix);
      const error = { kind: "configuration", message: expect.stringContaining("hard link") };
      for (const readOnly of [false, true])
        await expect(openDatabase({ url, readOnly })).rejects.toMatchObject(error);
      expect(await readFile(`${path}.other`, "utf8")).toBe("kept");
    },
  );

  it("is refused for the file that the operating system finds through links of folders", async () => {
    const url = await createSqliteUrl();
    const path = url.slice("sqlite:".length);
    const folder = dirname(path);
    const victim = join(folder, "victim");
    await writeFile(victim, "kept");
    await mkdir(join(folder, "sub", "deep"), { recursive: true });
    await symlink("sub/deep", join(folder, "link"));
    await symlink("link/../other.db", path);
    const { kysely } = await openForTest({ url: "sqlite::memory:" });
    await sql`create table notes (id integer)`.execute(kysely);
    const other = join(folder, "sub", "other.db");
    for (const each of [other, join(folder, "other.db")])
      await sql`vacuum into ${each}`.execute(kysely);
    expect(databaseFileOf(url)).toBe(await realpath(other));
    await writeFile(`${other}-journal`, superJournalOf(victim));
    const error = { kind: "configuration", message: expect.stringContaining("other.db-journal") };
    await expect(openDatabase({ url })).rejects.toMatchObject(error);
    expect(await readFile(victim, "utf8")).toBe("kept");
    await rm(`${other}-journal`);
    execFileSync("mkfifo", [`${other}-wal`]);
    for (const inThread of [false, true])
      await expect(openDatabase({ url, readOnly: true, inThread })).rejects.toMatchObject({
        message: expect.stringContaining("other.db-wal"),
      });
  });

  it.each(["-journal", "-wal", "-shm"])(
    "is refused where the file's %s is a pipe, which SQLite would read",
    async (suffix) => {
      const error = { kind: "configuration", message: expect.stringContaining(suffix) };
      const url = await createSqliteUrl();
      const path = url.slice("sqlite:".length);
      await writeFile(path, "");
      await symlink("test.db", `${path}.link`);
      execFileSync("mkfifo", [`${path}${suffix}`]);
      for (const each of [url, `${url}.link`])
        for (const inThread of [false, true])
          await expect(openDatabase({ url: each, readOnly: true, inThread })).rejects.toMatchObject(
            error,
          );
    },
  );

  it("is refused where the file is a link to itself", async () => {
    const url = await createSqliteUrl();
    const path = url.slice("sqlite:".length);
    await symlink("test.db", path);
    const error = { name: "DatabaseError", kind: "configuration" };
    for (const readOnly of [false, true])
      await expect(openDatabase({ url, readOnly })).rejects.toMatchObject(error);
  });

  it("names a missing folder", async () => {
    const url = `${await createSqliteUrl()}.d/ledger.db`;
    await expect(lockDatabaseFile(url)).rejects.toMatchObject({
      kind: "configuration",
      message: expect.stringMatching(/the folder .*test\.db\.d does not exist$/),
    });
  });

  it("disturbs neither readers nor writers of the database", async () => {
    const url = await createSqliteUrl();
    const lock = await lockDatabaseFile(url);
    const database = await openForTest<CounterSchema>({ url });
    await migrate(database, { name: "counters", migrations: counterMigrations });
    await database.kysely.insertInto("counters").values({ id: 1, value: 1 }).execute();
    const reader = await openForTest<CounterSchema>({ url, readOnly: true });
    expect(await reader.kysely.selectFrom("counters").selectAll().execute()).toHaveLength(1);
    lock?.release();
  });

  it("is absent for a database without a file", async () => {
    expect(await lockDatabaseFile("sqlite::memory:")).toBeUndefined();
    expect(await lockDatabaseFile("postgres://localhost/coinslot")).toBeUndefined();
  });
});
