import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { inclusion, order, payer, stateOf, wish } from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { enqueuePayment } from "../payments/enqueue-payments.ts";
import { recordOutcomes } from "../payments/record-outcomes.ts";
import { reservePayment } from "../payments/reserve-payments.ts";
import { createRefund } from "../refunds/create-refund.ts";
import { releaseAbandoned, sendHeartbeat } from "./processes.ts";

const nothing = { reserved: 0, queued: [] };

/** A payment whose handler runs in a process. */
async function serve(ledger: LedgerContext) {
  const wanted = wish();
  const held = await reservePayment(ledger, wanted);
  if (held.outcome !== "reserved") throw new Error(held.outcome);
  const enqueue = () => enqueuePayment(ledger, { token: held.token, payer, order });
  return { wanted, enqueue, id: held.paymentId };
}

describe.each(engines)("a database on %s that stood still for all processes", (engine) => {
  const { join, silence, read, wait } = ledgerForEachTest(engine);

  it("leaves a living process its reservation, whoever writes first", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const { wanted, enqueue, id } = await serve(one);
    await silence("one");
    await silence("two");
    expect(await reservePayment(two, wanted)).toMatchObject({ outcome: "in_use" });
    await sendHeartbeat(two);
    expect(await reservePayment(two, wanted)).toMatchObject({ outcome: "in_use" });
    await releaseAbandoned(two);
    expect(await enqueue()).toMatchObject({ id });
  });

  it("leaves it its reservation where the first writer's heartbeat still counts", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const { wanted, enqueue, id } = await serve(one);
    // The heartbeats of a process are a fifth of a lease apart.
    await silence("one", 31_000);
    await silence("two", 26_000);
    expect(await releaseAbandoned(two)).toEqual(nothing);
    expect(await reservePayment(two, wanted)).toMatchObject({ outcome: "in_use" });
    await sendHeartbeat(two);
    expect(await releaseAbandoned(two)).toEqual(nothing);
    expect(await enqueue()).toMatchObject({ id });
  });

  it("leaves it its reservation where the first writer has just joined", async () => {
    const one = await join("one");
    const { wanted, enqueue, id } = await serve(one);
    await silence("one");
    const two = await join("two", { isNew: true });
    expect(await releaseAbandoned(two)).toEqual(nothing);
    expect(await reservePayment(two, wanted)).toMatchObject({ outcome: "in_use" });
    expect(await enqueue()).toMatchObject({ id });
  });

  it("leaves it a paid payment that it is about to deliver: no refund begins", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const { wanted, enqueue, id } = await serve(one);
    await enqueue();
    await recordOutcomes(one, [{ confirmed: { ids: [id], inclusion } }]);
    await silence("one");
    await silence("two", 26_000);
    const refund = () => createRefund(two, { payment: id, idempotencyKey: "1" });
    await expect(refund()).rejects.toMatchObject({ reason: "in_use" });
    expect(await reservePayment(two, wanted)).toMatchObject({ outcome: "in_use" });
    await sendHeartbeat(two);
    await expect(refund()).rejects.toMatchObject({ reason: "in_use" });
  });

  it("frees what a dead process held a lease later", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const [served, other] = [await serve(one), await serve(one)];
    await silence("one");
    await silence("two");
    await sendHeartbeat(two);
    wait(30_000);
    expect(await reservePayment(two, served.wanted)).toMatchObject({ outcome: "reserved" });
    expect(await releaseAbandoned(two)).toEqual({ reserved: 1, queued: [] });
    expect(await stateOf(two, other.id)).toBe("released");
    expect(await served.enqueue()).toBeUndefined();
  });

  it("frees at once what a process held whose row is gone", async () => {
    const one = await join("one");
    const [served, other] = [await serve(one), await serve(one)];
    await read(sql`delete from processes where id = 'one'`);
    const two = await join("two", { isNew: true });
    expect(await reservePayment(two, served.wanted)).toMatchObject({ outcome: "reserved" });
    expect(await releaseAbandoned(two)).toEqual({ reserved: 1, queued: [] });
    expect(await stateOf(two, other.id)).toBe("released");
  });
});

describe("a PostgreSQL that stood still in the middle of a transaction", () => {
  const heartbeatLeaseMs = 3_000;
  const { join, read } = ledgerForEachTest("postgres", { heartbeatLeaseMs });

  async function ageOf(processId: string): Promise<number> {
    const [row] = await read(sql`
      select extract(epoch from clock_timestamp()) * 1000 - heartbeat_at as age
      from processes where id = ${processId}`);
    if (typeof row !== "object" || row === null || !("age" in row)) throw new Error("No row");
    return Number(row.age);
  }

  it("leaves a living process its reservation: a transaction counts who lived at its begin", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const { wanted, enqueue, id } = await serve(one);
    await sendHeartbeat(one);
    await sendHeartbeat(two);
    let deciding: Promise<unknown> | undefined;
    await one.write(async (transaction) => {
      await transaction
        .selectFrom("payers")
        .selectAll()
        .where("payer", "=", payer)
        .forUpdate()
        .execute();
      deciding = reservePayment(two, wanted);
      await expect.poll(() => ageOf("one"), { timeout: 20_000 }).toBeGreaterThan(heartbeatLeaseMs);
    });
    expect(await deciding).toMatchObject({ outcome: "in_use" });
    expect(await enqueue()).toMatchObject({ id });
  });
});
