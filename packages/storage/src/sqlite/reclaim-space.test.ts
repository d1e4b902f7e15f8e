import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Database, openDatabase } from "../database.ts";

describe("the unused space of a SQLite file", () => {
  let folder: string;
  let file: string;
  const opened: Database<unknown>[] = [];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "coinslot-reclaim-"));
    file = join(folder, "file.db");
  });
  afterEach(async () => {
    for (const database of opened.splice(0)) await database.close();
    await rm(folder, { recursive: true });
  });

  async function open(incrementalVacuum: boolean): Promise<Database<unknown>> {
    const database = await openDatabase({ url: `sqlite:${file}`, incrementalVacuum });
    opened.push(database);
    return database;
  }

  async function fillAndEmpty({ kysely }: Database<unknown>): Promise<void> {
    await sql`create table filling (content blob)`.execute(kysely);
    await sql`
      insert into filling with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 1000)
      select randomblob(3000) from numbers`.execute(kysely);
    await sql`delete from filling where rowid % 10 > 0`.execute(kysely);
  }

  const pages = async ({ kysely }: Database<unknown>) =>
    (await sql<{ page_count: number }>`pragma page_count`.execute(kysely)).rows[0]?.page_count ?? 0;
  const step = ({ transaction, dialect }: Database<unknown>) =>
    transaction((tx) => dialect.reclaimSpace(tx, 50));

  it("is given back in bounded steps, but for a share for new rows", async () => {
    const database = await open(true);
    await fillAndEmpty(database);
    const full = await pages(database);
    expect(await step(database)).toBe(true);
    expect(await pages(database)).toBe(full - 50);
    while (await step(database));
    const left = await pages(database);
    expect(left).toBeLessThan(full / 4);
    expect(await step(database)).toBe(false);
    expect(await pages(database)).toBe(left);
    await sql`pragma wal_checkpoint(truncate)`.execute(database.kysely);
    expect((await stat(file)).size).toBe(left * 4096);
  });

  it("stays in a file that was created without incremental vacuum", async () => {
    const first = await open(false);
    await fillAndEmpty(first);
    const full = await pages(first);
    await first.close();
    const database = await open(true);
    expect(await step(database)).toBe(false);
    expect(await pages(database)).toBe(full);
  });
});
