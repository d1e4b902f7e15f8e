import { sql, type Transaction } from "kysely";
import { describe, expect, it } from "vitest";
import type { Database } from "./database.ts";
import { createLeases, type Lease, leasesMigration } from "./leases.ts";
import { type Migration, migrate } from "./migrate.ts";
import { engines, openForTest } from "./testing/engines.ts";
import { type CounterSchema, counterMigrations } from "./testing/schema.ts";

const name = "relayer";
const ttlMs = 1_000;

const clockMigration: Migration = {
  title: "clock",
  async up(tx, { types }) {
    await tx.schema.createTable("clock").addColumn("now_ms", types.integer).execute();
    await sql`insert into clock (now_ms) values (0)`.execute(tx);
  },
};

/** Leases on a clock in a table: it is still the database's, and the test moves it. */
async function openLeases(url: string) {
  const database = await openForTest<CounterSchema>({ url });
  const migrations = [leasesMigration, ...counterMigrations, clockMigration];
  await migrate(database, { name: "test", migrations });
  const nowMs = sql<number>`(select now_ms from clock)`;
  return { database, leases: createLeases({ database, nowMs }) };
}

async function advance({ kysely }: Database<CounterSchema>, byMs: number): Promise<void> {
  await sql`update clock set now_ms = now_ms + ${byMs}`.execute(kysely);
}

function held(lease: Lease | undefined): Lease {
  if (lease === undefined) throw new Error("The lease was refused");
  return lease;
}

async function nowOf({ kysely, dialect }: Database<CounterSchema>): Promise<number> {
  const query = kysely.selectNoFrom(dialect.nowMs().as("now"));
  return (await query.executeTakeFirstOrThrow()).now;
}

async function waitingForLocks(tx: Transaction<CounterSchema>): Promise<number> {
  const { rows } = await sql`
    select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
  `.execute(tx);
  return rows.length;
}

describe.each(engines)("leases on $engine", ({ createUrl }) => {
  it("are held by one owner until they expire, and then by the next, with a higher epoch", async () => {
    const { database, leases } = await openLeases(await createUrl());
    const first = held(await leases.acquire({ name, owner: "a", ttlMs }));
    expect(first).toEqual({ name, owner: "a", epoch: 1, expiresAtMs: ttlMs });
    await advance(database, ttlMs - 1);
    expect(await leases.acquire({ name, owner: "b", ttlMs })).toBeUndefined();
    expect(await leases.isHeld(first)).toBe(true);

    await advance(database, 1);
    expect(await leases.isHeld(first)).toBe(false);
    const second = held(await leases.acquire({ name, owner: "b", ttlMs }));
    expect(second.epoch).toBe(2);
    expect(await leases.isHeld(second)).toBe(true);
  });

  it("last while they are renewed, and cannot be renewed after they expire", async () => {
    const { database, leases } = await openLeases(await createUrl());
    let lease = held(await leases.acquire({ name, owner: "a", ttlMs }));
    for (let round = 0; round < 5; round++) {
      await advance(database, ttlMs - 1);
      lease = held(await leases.renew(lease, { ttlMs }));
      expect(lease.epoch).toBe(1);
    }
    await advance(database, ttlMs);
    expect(await leases.renew(lease, { ttlMs })).toBeUndefined();
  });

  it("of a dead owner end soon where the database's clock was put back, and a living owner's go on", async () => {
    const { database, leases } = await openLeases(await createUrl());
    await advance(database, 3_600_000);
    const first = held(await leases.acquire({ name, owner: "a", ttlMs }));
    const living = held(await leases.acquire({ name: "living", owner: "a", ttlMs }));
    await advance(database, -5 * ttlMs);
    const renewed = held(await leases.renew(living, { ttlMs }));
    expect(await leases.acquire({ name, owner: "b", ttlMs })).toBeUndefined();
    await advance(database, -3_600_000 + 5 * ttlMs);
    const second = held(await leases.acquire({ name, owner: "b", ttlMs }));
    expect(second.epoch).toBe(2);
    expect([await leases.isHeld(first), await leases.isHeld(second)]).toEqual([false, true]);
    expect(await leases.renew(renewed, { ttlMs })).toBeDefined();
    expect(await leases.acquire({ name: "living", owner: "b", ttlMs })).toBeUndefined();
  });

  it("can be released, and their epoch keeps rising", async () => {
    const { leases } = await openLeases(await createUrl());
    const first = held(await leases.acquire({ name, owner: "a", ttlMs }));
    await leases.release(first);
    expect(await leases.isHeld(first)).toBe(false);
    expect(await leases.renew(first, { ttlMs })).toBeUndefined();
    const again = held(await leases.acquire({ name, owner: "a", ttlMs }));
    expect(again.epoch).toBe(2);
    await leases.release(first);
    expect(await leases.isHeld(again)).toBe(true);
  });

  it("are independent under different names", async () => {
    const { leases } = await openLeases(await createUrl());
    held(await leases.acquire({ name, owner: "a", ttlMs }));
    held(await leases.acquire({ name: "other", owner: "b", ttlMs }));
  });

  it("are listed by the beginnings of their names, with their last owner", async () => {
    const { database, leases } = await openLeases(await createUrl());
    await leases.acquire({ name: "relayer:1:b", owner: "one", ttlMs: 2 * ttlMs });
    await leases.acquire({ name: "relayer:1:a", owner: "two", ttlMs });
    await leases.acquire({ name: "settler:1:x", owner: "two", ttlMs });
    await leases.acquire({ name: "relayer:10:a", owner: "two", ttlMs });
    await advance(database, ttlMs);
    expect(await leases.list(["relayer:1:", "settler:1:"])).toEqual([
      { name: "relayer:1:a", owner: "two", isHeld: false },
      { name: "relayer:1:b", owner: "one", isHeld: true },
      { name: "settler:1:x", owner: "two", isHeld: false },
    ]);
  });

  it("can be forgotten by their prefix, some time after their end", async () => {
    const { database, leases } = await openLeases(await createUrl());
    await leases.acquire({ name: "settler:a", owner: "one", ttlMs });
    await leases.acquire({ name: "settler:b", owner: "two", ttlMs: 2 * ttlMs });
    await leases.acquire({ name: "relayer:a", owner: "one", ttlMs });
    await advance(database, 2 * ttlMs);
    await leases.forget({ prefix: "settler:", endedForMs: ttlMs });
    const names = (await leases.list(["settler:", "relayer:"])).map((each) => each.name);
    expect(names).toEqual(["relayer:a", "settler:b"]);
  });

  it("go to exactly one of the racing owners, at every expiry", async () => {
    const url = await createUrl();
    const { database, leases } = await openLeases(url);
    const { leases: other } = await openLeases(url);
    for (let epoch = 1; epoch <= 5; epoch++) {
      const outcomes = await Promise.all(
        Array.from({ length: 12 }, (_, index) =>
          (index % 2 === 0 ? leases : other).acquire({ name, owner: `owner ${index}`, ttlMs }),
        ),
      );
      const winners = outcomes.filter((lease) => lease !== undefined);
      expect(winners.map((lease) => lease.epoch)).toEqual([epoch]);
      await advance(database, ttlMs);
    }
  });

  it("fence off a statement of an owner that froze", async () => {
    const { database, leases } = await openLeases(await createUrl());
    const frozen = held(await leases.acquire({ name, owner: "a", ttlMs }));
    const writeUnder = (lease: Lease) =>
      database.kysely
        .updateTable("counters")
        .set(({ eb }) => ({ value: eb("value", "+", 1) }))
        .where(leases.guard(lease))
        .executeTakeFirst();
    await database.kysely.insertInto("counters").values({ id: 1, value: 0 }).execute();
    expect((await writeUnder(frozen)).numUpdatedRows).toBe(1n);

    await advance(database, ttlMs);
    expect((await writeUnder(frozen)).numUpdatedRows).toBe(0n);
    const awake = held(await leases.acquire({ name, owner: "b", ttlMs }));
    expect((await writeUnder(frozen)).numUpdatedRows).toBe(0n);
    expect((await writeUnder(awake)).numUpdatedRows).toBe(1n);
  });

  it("are not taken over before their guarded statement has committed", async () => {
    const url = await createUrl();
    const { database } = await openLeases(url);
    const other = await openForTest<CounterSchema>({ url });
    const leases = createLeases({ database });
    const lease = held(await leases.acquire({ name, owner: "a", ttlMs: 2_000 }));
    const rows = () => other.kysely.selectFrom("counters").selectAll().execute();

    const takeover = await database.transaction(async (tx) => {
      await sql`insert into counters (id, value) select 1, 1 where ${leases.guard(lease)}`.execute(
        tx,
      );
      await expect.poll(() => nowOf(other), { timeout: 20_000 }).toBeGreaterThan(lease.expiresAtMs);
      const taken = createLeases({ database: other }).acquire({ name, owner: "b", ttlMs });
      if (database.engine === "postgres")
        await expect.poll(() => waitingForLocks(tx), { timeout: 20_000 }).toBe(1);
      return { whenTaken: taken.then(rows) };
    });
    expect(await takeover.whenTaken).toEqual([{ id: 1, value: 1 }]);
  });

  it("use the database's clock by default", async () => {
    const { database } = await openLeases(await createUrl());
    const before = await nowOf(database);
    const leases = createLeases({ database });
    const lease = held(await leases.acquire({ name, owner: "a", ttlMs: 60_000 }));
    expect(lease.expiresAtMs).toBeGreaterThanOrEqual(before + 60_000);
    expect(lease.expiresAtMs).toBeLessThan(before + 90_000);
    const short = held(await leases.acquire({ name: "short", owner: "a", ttlMs: 1 }));
    await expect.poll(() => leases.isHeld(short)).toBe(false);
  });
});
