import { createLeases, migrate, openDatabase } from "@coinslot/storage";
import { sql } from "kysely";
import { expect, it, onTestFinished } from "vitest";
import { engines } from "../testing/engines.ts";
import { indexerMigrations } from "./migrations/indexer-migrations.ts";
import type { IndexerSchema } from "./schema.ts";
import { createWriterLease } from "./writer-lease.ts";

const [, postgres] = engines;

it("no transaction of a writer begins while one with a lost connection may still commit", async () => {
  const url = await postgres.createUrl();
  const [lost, next] = [await open(), await open()];
  await migrate(lost, indexerMigrations);
  const leases = createLeases({ database: lost });
  const lease = await leases.acquire({ name: "writer", owner: "writer", ttlMs: 60_000 });
  if (lease === undefined) throw new Error("not acquired");
  // One owner with two connections: the server has not noticed the loss of the first.
  const order: string[] = [];
  let commit = () => {};
  const held = new Promise<void>((resolve) => {
    commit = resolve;
  });
  let following: Promise<unknown> | undefined;
  const first = createWriterLease(lost, { leases, lease }).write(async () => {
    following = createWriterLease(next, { leases, lease }).write(async () => order.push("next"));
    await held;
    order.push("lost");
  });
  await expect.poll(async () => order.length > 0 || (await countWaiting())).toBeTruthy();
  commit();
  await Promise.all([first, following]);
  expect(order).toEqual(["lost", "next"]);

  async function open() {
    const database = await openDatabase<IndexerSchema>({ url });
    onTestFinished(() => database.close());
    return database;
  }

  async function countWaiting(): Promise<number> {
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from pg_locks
      where not granted and pid in (select pid from pg_stat_activity where datname = current_database())
    `.execute(lost.kysely);
    return rows[0]?.count ?? 0;
  }
});
