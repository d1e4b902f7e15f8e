import { sql } from "kysely";
import { describe, expect, it, onTestFinished } from "vitest";
import { acquireLease, type HeldLease } from "./held-lease.ts";
import { createLeases, leasesMigration } from "./leases.ts";
import { migrate } from "./migrate.ts";
import { engines, openForTest } from "./testing/engines.ts";

const name = "relayer";
const clock = {
  now: () => performance.now(),
  setTimer(run: () => void, delayMs: number) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

describe.each(engines)("a held lease on $engine", ({ createUrl }) => {
  async function open() {
    const database = await openForTest({ url: await createUrl() });
    await migrate(database, { name: "test", migrations: [leasesMigration] });
    const leases = createLeases({ database });
    const events: unknown[] = [];

    async function acquire(owner: string, ttlMs: number): Promise<HeldLease | undefined> {
      const held = await acquireLease({
        leases,
        name,
        owner,
        ttlMs,
        clock,
        onLost: () => events.push(`${owner} lost it`),
        onError: (error) => events.push(error),
      });
      onTestFinished(async () => held?.release());
      return held;
    }

    async function databaseTime(): Promise<number> {
      const { kysely, dialect } = database;
      const query = kysely.selectNoFrom(dialect.nowMs().as("now"));
      return (await query.executeTakeFirstOrThrow()).now;
    }

    return { database, leases, events, acquire, databaseTime };
  }

  it("outlives its time by its renewals, and is free as soon as it is released", async () => {
    const { leases, events, acquire, databaseTime } = await open();
    const held = await acquire("a", 2_000);
    expect(held?.lease.epoch).toBe(1);
    const expiry = held?.lease.expiresAtMs ?? 0;
    await expect.poll(databaseTime, { timeout: 20_000 }).toBeGreaterThan(expiry + 1_000);
    expect(await acquire("b", 2_000)).toBeUndefined();
    expect(held && (await leases.isHeld(held.lease))).toBe(true);
    await held?.release();
    expect((await acquire("b", 60_000))?.lease.epoch).toBe(2);
    expect(events).toEqual([]);
  });

  it("is lost once, when a renewal is refused", async () => {
    const { leases, events, acquire } = await open();
    const held = await acquire("a", 600);
    await leases.endAll();
    await expect.poll(() => events, { timeout: 20_000 }).toEqual(["a lost it"]);
    expect((await acquire("b", 5_000))?.lease.epoch).toBe(2);
    held?.lose();
    await held?.release();
    expect(events).toEqual(["a lost it"]);
    expect(await acquire("c", 600)).toBeUndefined();
  });

  it("is lost when a guard has refused it, and renewed no more", async () => {
    const { leases, events, acquire } = await open();
    const held = await acquire("a", 400);
    held?.lose();
    expect(events).toEqual(["a lost it"]);
    await expect.poll(() => held && leases.isHeld(held.lease), { timeout: 20_000 }).toBe(false);
  });

  it("is lost when its time is over while a renewal hangs, before another owner has it", async () => {
    const { database, events, acquire } = await open();
    await acquire("a", 600);
    const next = await database.transaction(async (transaction) => {
      // Locks the row, and on SQLite the database: renewals and acquisitions hang.
      await sql`update coinslot_leases set owner = owner`.execute(transaction);
      const taken = acquire("b", 600);
      await expect.poll(() => events, { timeout: 20_000 }).toEqual(["a lost it"]);
      return { taken };
    });
    const second = await next.taken;
    await second?.release();
    // The late renewal has not brought the lease back.
    const third = () => acquire("c", 600);
    await expect.poll(third, { timeout: 20_000 }).toMatchObject({ lease: { owner: "c" } });
  });

  it("survives failing renewals until its time is over", async () => {
    const { database, events, acquire } = await open();
    await acquire("a", 2_000);
    await sql`alter table coinslot_leases rename to away`.execute(database.kysely);
    await expect.poll(() => events, { timeout: 20_000 }).toContain("a lost it");
    expect(events.indexOf("a lost it")).toBeGreaterThan(1);
  });
});
