import { sql } from "kysely";
import { describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { silentLogger } from "../logger.ts";
import { defineOperation } from "../operators/operation.ts";
import { operatorAt, operatorWithin } from "../operators/operator.ts";
import { operations } from "../operators/registry.ts";
import { serveOnSocket } from "../operators/serve-on-socket.ts";
import { serveOverHttp } from "../operators/serve-over-http.ts";
import { openTestLedger } from "../operators/testing/open-test-ledger.ts";
import { timelineOperation } from "../reads/timeline/timeline-operation.ts";
import { createRefundOperation } from "../refunds/refund-operations.ts";
import { stopsOperation } from "../stops/stops-operation.ts";
import { copyMigratedLedger } from "../testing/migrated-ledger.ts";
import { engines } from "../testing/settling-devnet.ts";
import { sellForTest } from "../testing/sold-payments.ts";
import { takeOperation } from "../webhooks/webhook-operations.ts";
import { listAuditOperation, recordAuditOperation } from "./audit-operations.ts";
import { redact } from "./redact.ts";

const target = { kind: "route", name: "GET /weather" } as const;
const change = { operation: "set", target, reason: "a broken forecast" } as const;
const key = "k".repeat(32);

async function open(engine: (typeof engines)[number]) {
  const { url, drop } = await copyMigratedLedger(engine);
  onTestFinished(drop);
  const ledger = await openTestLedger(url);
  const parts = {
    context: { ledger, seller: undefined },
    read: <Result>(work: (reads: typeof ledger) => Promise<Result>) => work(ledger),
  };
  return { url, ledger, parts, operator: operatorWithin((work) => work(parts)) };
}

describe.each(engines)("the audit log on %s", (engine) => {
  it("has each act once, with its caller, its argument and its end", async () => {
    const { ledger, operator } = await open(engine);
    const { paymentId } = await sellForTest(ledger);
    const words = { account: "Ann <script>\u202e", idempotencyKey: "form-1" };
    await operator.run(stopsOperation, change, words);
    const refund = await operator.run(createRefundOperation, {
      payment: paymentId,
      idempotencyKey: "refund-1",
    });
    await expect(
      operator.run(createRefundOperation, { payment: "no such", idempotencyKey: "refund-2" }),
    ).rejects.toMatchObject({ code: "unknown_payment" });
    const { entries, nextCursor } = await operator.run(listAuditOperation, {});
    expect(entries).toMatchObject([
      {
        outcome: "refused",
        code: "unknown_payment",
        operation: "refunds.create",
        subject: "no such",
      },
      {
        outcome: "done",
        operation: "refunds.create",
        subject: paymentId,
        idempotencyKey: "refund-1",
        result: { id: refund.id, state: "scheduled" },
      },
      {
        outcome: "done",
        via: "process",
        actor: "facilitator.operator",
        operation: "stops",
        argument: change,
        idempotencyKey: "form-1",
        account: words.account,
        isRecorded: false,
      },
    ]);
    expect(nextCursor).toBeNull();
    const ofPayment = await operator.run(listAuditOperation, { subject: paymentId, limit: 1 });
    expect(ofPayment.entries).toHaveLength(1);
    const { steps } = await operator.run(timelineOperation, { id: paymentId });
    expect(steps).toContainEqual(
      expect.objectContaining({
        kind: "command",
        by: { kind: "operator", name: "facilitator.operator" },
        facts: { operation: "refunds.create", outcome: "done" },
      }),
    );
    const page = await operator.run(listAuditOperation, { limit: 2 });
    const next = await operator.run(listAuditOperation, { cursor: page.nextCursor ?? "" });
    expect([...page.entries, ...next.entries]).toEqual(entries);
  });

  it("has the entry in the transaction of the act: neither is without the other", async () => {
    const { ledger, operator } = await open(engine);
    const died = new Error("the process dies");
    const breaking = defineOperation({
      name: "stops.break",
      access: "write",
      argument: z.strictObject({ isWritten: z.boolean() }),
      result: z.object({}),
      async run({ ledger: given }, { isWritten }) {
        await given.write(async (transaction) => {
          await transaction
            .insertInto("stops")
            .values({ kind: "route", name: "GET /a", reason: "", stopped_at: 1 })
            .execute();
          if (!isWritten) throw died;
        });
        throw died;
      },
    });
    const rows = async () => ({
      stops: (await ledger.db.selectFrom("stops").selectAll().execute()).length,
      outcomes: (
        await ledger.db.selectFrom("audit_entries").select("outcome").orderBy("seq").execute()
      ).map(({ outcome }) => outcome),
    });
    await expect(operator.run(breaking, { isWritten: false })).rejects.toBe(died);
    expect(await rows()).toEqual({ stops: 0, outcomes: ["failed"] });
    await expect(operator.run(breaking, { isWritten: true })).rejects.toBe(died);
    expect(await rows()).toEqual({ stops: 1, outcomes: ["failed", "begun", "failed"] });
  });

  it("never changes, and loses nothing", async () => {
    const { ledger, operator } = await open(engine);
    await operator.run(stopsOperation, change);
    for (const statement of [
      sql`update audit_entries set actor = 'another'`,
      sql`delete from audit_entries`,
    ]) {
      await expect(statement.execute(ledger.db)).rejects.toThrow(/never changes/);
    }
    expect((await operator.run(listAuditOperation, {})).entries).toHaveLength(1);
  });

  it("names callers from outside: by key, by socket, by user; and records their words", async () => {
    const { url, parts } = await open(engine);
    const logged: object[] = [];
    const logger = { ...silentLogger, info: (fields: object) => void logged.push(fields) };
    const served = { ...parts, operations, logger };
    const listener = { host: "127.0.0.1", port: 0, keys: [key] };
    const http = await serveOverHttp(served, { listener, idleMs: 15_000 });
    onTestFinished(http.close);
    const socket = await serveOnSocket(served, { ledgerUrl: url, idleMs: 15_000 });
    onTestFinished(socket.close);
    const address = z.object({ address: z.object({ port: z.number() }) });
    const port = logged.flatMap((fields) => address.safeParse(fields).data?.address.port ?? [])[0];
    const byKey = operatorAt({ url: `http://127.0.0.1:${port}`, key });
    await byKey.run(stopsOperation, change, { account: "Åsa 字\n", idempotencyKey: "k-1" });
    await operatorAt(url).run(stopsOperation, change, { account: "Bob" });
    await byKey.run(takeOperation, {
      listener: "00000000-0000-4000-8000-000000000000",
      limit: 1,
    });
    await byKey.run(
      recordAuditOperation,
      { operation: "session.open", outcome: "done", argument: { role: "operator", secret: "s" } },
      { account: "Ann" },
    );
    const { entries } = await operatorAt(url).run(listAuditOperation, {});
    expect(entries).toMatchObject([
      {
        ...{ operation: "session.open", account: "Ann", isRecorded: true, via: "http" },
        argument: { role: "operator", secret: "…" },
      },
      engine === "sqlite"
        ? { via: "socket", actor: "socket", account: "Bob" }
        : { via: "command", account: "Bob" },
      { via: "http", actor: "key 5e318f8c", account: "Åsa 字\n", idempotencyKey: "k-1" },
    ]);
    expect(JSON.stringify(entries)).not.toContain(key);
  });
});

describe("an argument of the audit log", () => {
  it("has no signature, secret or password, at any depth", () => {
    const text = redact(
      { refunds: [{ id: "a", signature: "0x11" }], secret: "s", nested: { Password: 1 }, n: 7n },
      1_000,
    );
    expect(JSON.parse(text)).toEqual({
      refunds: [{ id: "a", signature: "…" }],
      secret: "…",
      nested: { Password: "…" },
      n: "7",
    });
  });

  it("is cut where it is long, and is JSON then, too", () => {
    const text = redact({ reason: "😀".repeat(5_000) }, 1_001);
    expect(JSON.parse(text).cut.length).toBeLessThanOrEqual(1_001);
    expect(Buffer.from(text).toString()).toBe(text);
    const deep = JSON.parse(`${'{"a":'.repeat(500)}1${"}".repeat(500)}`);
    expect(redact(deep, 1_000).length).toBeLessThan(1_000);
  });
});
