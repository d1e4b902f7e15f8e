import type { Hex } from "@coinslot/protocol";
import { CompiledQuery, sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ledgerLater } from "../../testing/ledger-later.ts";
import { copyMigratedLedger } from "../../testing/migrated-ledger.ts";
import { engines, type TestLedger } from "../../testing/settling-devnet.ts";
import { createLedger } from "../create-ledger.ts";
import type { LedgerContext } from "../ledger-context.ts";
import type { RetentionTimes } from "../ledger-limits.ts";
import { type LedgerDatabase, openLedger } from "../open-ledger.ts";
import { deliverPayment } from "../payments/deliver-payments.ts";
import { dropExpiredAnswers } from "../payments/keep-answers.ts";
import { recordOutcomes } from "../payments/record-outcomes.ts";
import { releasePayment } from "../payments/release-payment.ts";
import { reservePayment } from "../payments/reserve-payments.ts";
import type { ReserveWish } from "../payments/reserve-request.ts";
import { selectArchived } from "../queries/find-archived.ts";
import {
  getPayment,
  getPayments,
  listPayments,
  type PaymentFilter,
} from "../queries/list-payments.ts";
import { paymentStats } from "../queries/payment-stats.ts";
import { createRefund } from "../refunds/create-refund.ts";
import { listRefunds } from "../refunds/list-refunds.ts";
import { findHashes, findHighestNonce } from "../transactions/find-transactions.ts";
import { storeTransaction } from "../transactions/store-transaction.ts";
import { finaliseBlocks } from "../transactions/undo-blocks.ts";
import { archivePayments } from "./archive-payments.ts";
import { closePayments } from "./close-payments.ts";
import { keepGenesis } from "./keep-genesis.ts";
import { sendHeartbeat } from "./processes.ts";
import { retentionSteps } from "./retention-steps.ts";

const network = "eip155:9745";
const payer = `0x${"bb".repeat(20)}` satisfies Hex;
const payTo = `0x${"dd".repeat(20)}` satisfies Hex;
const relayer = `0x${"cc".repeat(20)}` satisfies Hex;
const order = { payTo, validAfter: 0n, signature: `0x${"11".repeat(65)}` } as const;
const hour = 3_600_000;
const day = 24 * hour;

describe.each(engines)("retention in a ledger on %s", (engine) => {
  let place: TestLedger;
  let opened: LedgerDatabase;
  let ledger: LedgerContext;
  let now: number;
  let nonces = 0;

  beforeEach(async () => {
    now = 1_000 * day;
    place = await copyMigratedLedger(engine);
    opened = await openLedger({ url: place.url, processId: "one" });
    ledger = createLedger({
      database: opened.database,
      processId: "one",
      now: () => now,
      heartbeatLeaseMs: 30_000,
      keepAnswersMs: 60_000,
      releaseLimit: { count: 1_000, windowMs: 1_000 },
    });
    await sendHeartbeat(ledger);
  });

  afterEach(async () => {
    await opened.close();
    await place.drop();
  });

  const hash = (number: number): Hex => `0x${number.toString(16).padStart(64, "0")}`;
  const seconds = () => BigInt(Math.floor(now / 1000));

  async function reserve(change: Partial<ReserveWish> = {}) {
    nonces += 1;
    const id = { network, asset: payTo, payer, nonce: hash(nonces) } as const;
    const wish = { id, fingerprint: "GET /a", value: 1n, validBefore: seconds() + 300n, payTo };
    const reserved = await reservePayment(ledger, { ...wish, ...change });
    if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
    return reserved;
  }

  /** Settled, in a block of its own that is final. */
  async function settle(change: Partial<ReserveWish> = {}) {
    const { paymentId, token } = await reserve({ order, ...change });
    const lease = await ledger.leases.acquire({ name: "relayer", owner: "one", ttlMs: 60_000 });
    if (lease === undefined) throw new Error("The lease is taken");
    const raw = "0x02" as const;
    const forms = { content: "payments", maxFeePerGas: 7n, maxPriorityFeePerGas: 1n } as const;
    const transaction = {
      id: `${paymentId.slice(0, 12)} of nonce ${nonces}`,
      network,
      relayer,
      nonce: nonces,
      gasLimit: 100_000n,
      broadcast: { hash: hash(1_000 + nonces), raw, ...forms },
      payments: [{ id: paymentId, fingerprint: "GET /a" }],
    } as const;
    expect(await storeTransaction(ledger, lease, transaction)).toBe("stored");
    await ledger.leases.release(lease);
    const blockHash = hash(2_000 + nonces);
    const inclusion = { transactionHash: hash(1_000 + nonces), blockNumber: nonces, blockHash };
    await recordOutcomes(ledger, [{ confirmed: { ids: [paymentId], inclusion } }], {
      id: transaction.id,
      inclusion,
      gasUsed: 1n,
    });
    await finaliseBlocks(ledger, { network, blocks: [{ number: nonces, hash: blockHash }] });
    return { id: paymentId, token, transactionId: transaction.id };
  }

  /** One pass of retention, with everything kept for a day and payments for longer. */
  async function retire(changes: Partial<RetentionTimes> = {}) {
    const times = {
      keepSignaturesMs: day,
      keepPaymentsMs: undefined,
      keepUndeliveredMs: undefined,
    };
    for (const step of retentionSteps(ledger, { ...times, ...changes })) {
      while ((await step()) === "again");
    }
  }
  const forgetAfterADay = () => retire({ keepPaymentsMs: day });
  const known = async () =>
    (await listPayments(ledger, { limit: 1000 })).payments.map(({ id }) => id);
  const isArchived = async (id: string) => (await getPayment(ledger, id))?.isPruned;
  const countOf = (table: "orders" | "broadcasts" | "transactions" | "payments") =>
    opened.database.kysely
      .selectFrom(table)
      .select(({ fn }) => fn.countAll().as("count"))
      .executeTakeFirstOrThrow()
      .then(({ count }) => Number(count));

  it("archives payments past their retention, without the signed forms", async () => {
    const first = await settle({ keyHash: "key" });
    await deliverPayment(ledger, first.token);
    const second = await settle();
    await deliverPayment(ledger, second.token);
    const before = await listPayments(ledger, {});
    const stats = await paymentStats(ledger);
    now += day;
    await retire();
    expect(await listPayments(ledger, {})).toEqual(before);
    now += 1;
    await retire();
    const pruned = {
      fingerprint: "",
      keyHash: undefined,
      transactionId: undefined,
      isPruned: true,
    };
    expect((await listPayments(ledger, {})).payments).toEqual(
      before.payments.map((payment) => ({ ...payment, ...pruned })),
    );
    expect(await getPayments(ledger, [first.id, second.id])).toEqual([]);
    expect(await getPayment(ledger, first.id)).toMatchObject({ id: first.id, ...pruned });
    expect(await paymentStats(ledger)).toEqual(stats);
    expect(await findHashes(ledger, first.transactionId)).toEqual([]);
    expect(await countOf("orders")).toBe(0);
    expect(await countOf("broadcasts")).toBe(0);
    // The next nonce is counted from the highest.
    expect(await countOf("transactions")).toBe(1);
    expect(await findHighestNonce(ledger, { network, relayer })).toBe(nonces);
  });

  it("deletes archived payments past theirs", async () => {
    const { id, token } = await settle();
    await deliverPayment(ledger, token);
    const { token: given, paymentId } = await reserve();
    await releasePayment(ledger, { token: given, payer, countsAgainstPayer: false });
    now += day + 1;
    await retire({ keepPaymentsMs: 2 * day });
    expect((await known()).sort()).toEqual([id, paymentId].sort());
    now += day;
    await retire({ keepPaymentsMs: 2 * day });
    expect(await known()).toEqual([]);
  });

  it("keeps a payment and its refunds until they are over, and forgets them together", async () => {
    const { id, token } = await settle({ value: 10n });
    await deliverPayment(ledger, token);
    const { id: refund } = await createRefund(ledger, {
      payment: id,
      amount: 4n,
      idempotencyKey: "a",
    });
    now += day + 1;
    await forgetAfterADay();
    expect(await isArchived(id)).toBe(false);
    const end = (which: string) =>
      opened.database.kysely
        .updateTable("refunds")
        .set({ state: "final" })
        .where("id", "=", which)
        .execute();
    await end(refund);
    await retire();
    expect(await isArchived(id)).toBe(true);
    // An archived payment can be given back, up to what is left of it.
    const rest = { payment: id, idempotencyKey: "b" };
    await expect(createRefund(ledger, { ...rest, amount: 7n })).rejects.toMatchObject({
      reason: "exceeds_payment",
    });
    const second = await createRefund(ledger, rest);
    expect(second).toMatchObject({ n: 2, amount: 6n });
    now += 2 * day;
    await forgetAfterADay();
    expect(await known()).toEqual([id]);
    await end(second.id);
    await forgetAfterADay();
    expect(await known()).toEqual([]);
    expect((await listRefunds(ledger)).refunds).toEqual([]);
  });

  it("keeps payments that may still be executed, resumed or delivered again", async () => {
    const lasting = { validBefore: seconds() + 10n * 86_400n };
    const undelivered = await settle();
    const valid = await settle(lasting);
    await deliverPayment(ledger, valid.token);
    const answered = await settle({ keyHash: "key" });
    await deliverPayment(ledger, answered.token);
    await opened.database.kysely
      .insertInto("answers")
      .values({
        payer,
        key_hash: "key",
        payment_id: answered.id,
        sealed: Uint8Array.of(1),
        expires_at: now + 6 * day,
      })
      .execute();
    const failed = await reserve({ order });
    const reason = "invalid_exact_evm_transaction_failed";
    await recordOutcomes(ledger, [{ failed: [{ ids: [failed.paymentId], reason }] }]);
    const queued = await reserve({ order });
    const released = await reserve(lasting);
    await releasePayment(ledger, { token: released.token, payer, countsAgainstPayer: false });
    now += 5 * day;
    await forgetAfterADay();
    const kept = [
      undelivered.id,
      valid.id,
      answered.id,
      failed.paymentId,
      queued.paymentId,
      released.paymentId,
    ];
    expect((await getPayments(ledger, kept)).map(({ id }) => id).sort()).toEqual(kept.sort());
    // Orders of those that the chain may still execute.
    const orders = await opened.database.kysely.selectFrom("orders").select("payment_id").execute();
    expect(orders.map(({ payment_id }) => payment_id).sort()).toEqual(
      [failed.paymentId, queued.paymentId].sort(),
    );

    await closePayments(ledger, [failed.paymentId]);
    await deliverPayment(ledger, undelivered.token);
    now += 2 * day;
    await dropExpiredAnswers(ledger);
    await forgetAfterADay();
    expect(await known()).not.toContain(failed.paymentId);
    expect(await known()).not.toContain(answered.id);
    expect(await known()).not.toContain(undelivered.id);
    expect(await known()).toContain(valid.id);
  });

  it("ends payments that were never delivered after a time of their own, but none in use", async () => {
    const [left, held, young] = [await settle(), await settle(), await settle()];
    const release = (token: string) =>
      releasePayment(ledger, { token, payer, countsAgainstPayer: false });
    await release(left.token);
    await release(young.token);
    const recent = { final_at: now + 4 * day };
    await opened.database.kysely
      .updateTable("payments")
      .set(recent)
      .where("id", "=", young.id)
      .execute();
    now += 5 * day;
    await retire();
    expect(await isArchived(left.id)).toBe(false);
    await retire({ keepUndeliveredMs: 3 * day });
    expect(await isArchived(left.id)).toBe(true);
    expect(await isArchived(held.id)).toBe(false);
    expect(await isArchived(young.id)).toBe(false);
    expect(await getPayment(ledger, left.id)).toMatchObject({
      state: "confirmed",
      deliveredAt: undefined,
    });
    now += day;
    await retire({ keepUndeliveredMs: 3 * day, keepPaymentsMs: 2 * day });
    expect((await known()).sort()).toEqual([young.id, held.id].sort());
  });

  it("ends no undelivered payment while its route has promised to give it back", async () => {
    const { id, token } = await settle();
    await releasePayment(ledger, { token, payer, countsAgainstPayer: false });
    const { kysely } = opened.database;
    const promised = { payment_id: id, due_at: now + 3 * day };
    await kysely.insertInto("refundable_payments").values(promised).execute();
    now += 2 * day;
    await retire({ keepUndeliveredMs: day });
    expect(await isArchived(id)).toBe(false);
    await kysely.deleteFrom("refundable_payments").execute();
    await retire({ keepUndeliveredMs: day });
    expect(await isArchived(id)).toBe(true);
  });

  it("keeps for ever what has no end, or one in more years than a clock has", async () => {
    const kept = await settle();
    now += 5_000 * day;
    for (const times of [Number.POSITIVE_INFINITY, Number.MAX_VALUE]) {
      await retire({ keepUndeliveredMs: times, keepPaymentsMs: times });
      await retire({ keepUndeliveredMs: times, keepPaymentsMs: times, keepSignaturesMs: times });
    }
    expect(await isArchived(kept.id)).toBe(false);
  });

  it("ends a paid payment that a dead process holds, and none of a living one", async () => {
    const held = await settle();
    const setHeartbeat = (age: number) =>
      sql`
        insert into processes (id, heartbeat_at)
        values ('two', ${ledger.dialect.nowMs()} - cast(${age} as bigint))
        on conflict (id) do update set heartbeat_at = excluded.heartbeat_at
      `.execute(opened.database.kysely);
    await opened.database.kysely.updateTable("payments").set({ owner: "two" }).execute();
    now += 2 * day;
    await setHeartbeat(0);
    await retire({ keepUndeliveredMs: day });
    expect(await isArchived(held.id)).toBe(false);
    await setHeartbeat(60_000);
    // While the database stood still, no heartbeat of any process counts.
    await sql`update processes set heartbeat_at = heartbeat_at - 60000 where id = 'one'`.execute(
      opened.database.kysely,
    );
    // Not a ledger that goes back.
    const { heartbeat } = ledger;
    if (heartbeat.writtenAt !== undefined) heartbeat.writtenAt -= 60_000;
    await retire({ keepUndeliveredMs: day });
    expect(await isArchived(held.id)).toBe(false);
    await sendHeartbeat(ledger);
    await retire({ keepUndeliveredMs: day });
    expect(await isArchived(held.id)).toBe(false);
    now += ledger.heartbeatLeaseMs;
    await retire({ keepUndeliveredMs: day });
    expect(await isArchived(held.id)).toBe(true);
  });

  it("continues where it stopped, a few rows at a time", async () => {
    const stays = await settle();
    for (let index = 0; index < 5; index += 1) {
      now += 1;
      const { token } = await reserve();
      await releasePayment(ledger, { token, payer, countsAgainstPayer: false });
    }
    now += 2 * day;
    const step = (after: string) =>
      archivePayments(ledger, {
        after,
        now,
        before: now - day,
        undeliveredBefore: undefined,
        limit: 3,
      });
    const first = await step("");
    expect(first).toMatchObject({ ended: 2 });
    const second = await step(first.after ?? "");
    expect(second).toMatchObject({ ended: 3 });
    expect(await step(second.after ?? "")).toMatchObject({ ended: 0, after: undefined });
    expect((await getPayments(ledger, await known())).map(({ id }) => id)).toEqual([stays.id]);
  });

  it("ends before young payments", async () => {
    const { token } = await reserve();
    await releasePayment(ledger, { token, payer, countsAgainstPayer: false });
    const bounds = { now, before: now - day, undeliveredBefore: undefined, limit: 1 };
    expect(await archivePayments(ledger, { after: "", ...bounds })).toEqual({
      ended: 0,
      after: undefined,
      keptNames: [],
    });
  });

  it("keeps the ledger on the chain of its payments, archived or forgotten", async () => {
    const keep = (hash: Hex) => keepGenesis(opened.database, { network, hashes: [hash] });
    await keep(hash(1));
    const { id, token } = await settle();
    await deliverPayment(ledger, token);
    now += 2 * day;
    await retire();
    expect(await isArchived(id)).toBe(true);
    expect(await keep(hash(2))).toBe(hash(1));
    await forgetAfterADay();
    expect(await known()).toEqual([]);
    // The relayer's next nonce is counted from one of that chain.
    expect(await keep(hash(2))).toBe(hash(1));
  });

  it("names the recipient of a payment from before the dictionary", async () => {
    const { id, token } = await settle();
    await deliverPayment(ledger, token);
    const { kysely } = opened.database;
    await kysely.updateTable("payments").set({ pay_to_id: null }).execute();
    await kysely.deleteFrom("sold_names").execute();
    now += 2 * day;
    await retire();
    expect(
      await kysely
        .selectFrom("archived_payments")
        .innerJoin("sold_names", "sold_names.id", "pay_to_id")
        .select(["archived_payments.id", "name"])
        .execute(),
    ).toEqual([{ id, name: payTo }]);
  });

  it("lists archived payments among the others, page by page, by their filters", async () => {
    const ids: string[] = [];
    for (let index = 0; index < 7; index += 1) {
      now += 1;
      const { paymentId, token } = await reserve();
      ids.unshift(paymentId);
      if (index % 2) await releasePayment(ledger, { token, payer, countsAgainstPayer: false });
    }
    now += 2 * day;
    await retire();
    expect(await countOf("payments")).toBe(4);
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await listPayments(ledger, { limit: 2, cursor });
      found.push(...page.payments.map(({ id }) => id));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(found).toEqual(ids);
    const list = async (filter: PaymentFilter) =>
      (await listPayments(ledger, filter)).payments.length;
    expect(await list({ payer })).toBe(7);
    expect(await list({ payer: payTo })).toBe(0);
    expect(await list({ state: "released", network })).toBe(3);
    expect(await list({ network: "eip155:1" })).toBe(0);
    expect(await list({ createdBefore: now - 2 * day })).toBe(6);
    expect(await list({ createdFrom: now - 2 * day })).toBe(1);
  });

  // A SQLite file has one process, and so one clock.
  if (engine === "postgres") {
    it("ends nothing early for a process whose clock is ahead of the database's", async () => {
      const realNow = Date.now();
      const times = { keepSignaturesMs: day, keepUndeliveredMs: undefined };
      const retireBy = async (process: LedgerContext, keepPaymentsMs?: number) => {
        for (const step of retentionSteps(process, { ...times, keepPaymentsMs })) {
          while ((await step()) === "again");
        }
      };
      // Old enough, and valid for five minutes. Over, and not old enough.
      now = realNow - 2 * day;
      const valid = await reserve({ validBefore: BigInt(Math.floor(realNow / 1000) + 300) });
      now = realNow - day + hour;
      const young = await reserve();
      for (const { token } of [valid, young]) {
        await releasePayment(ledger, { token, payer, countsAgainstPayer: false });
      }
      now = realNow + 2 * hour;
      await retireBy(ledger);
      expect(await countOf("payments")).toBe(2);

      now = realNow;
      await retireBy(ledgerLater(ledger, 2 * hour));
      expect(await countOf("payments")).toBe(0);
      now = realNow + 2 * day;
      await retireBy(ledger, 2 * day);
      expect(await isArchived(young.paymentId)).toBe(true);
    });

    // SQLite has one writer at a time.
    it("leaves a payment alone that a request takes meanwhile", async () => {
      const undelivered = await settle();
      await releasePayment(ledger, { token: undelivered.token, payer, countsAgainstPayer: false });
      now += 5 * day;
      await opened.database.transaction(async (transaction) => {
        await transaction
          .updateTable("payments")
          .set({ token: "of a request", owner: "one" })
          .where("id", "=", undelivered.id)
          .execute();
        await retire({ keepUndeliveredMs: day });
      });
      await retire({ keepUndeliveredMs: day });
      expect(await isArchived(undelivered.id)).toBe(false);
    });
  }

  if (engine === "sqlite") {
    it("lets a list find archived payments by an index, whatever its filter", async () => {
      const bounds = { above: undefined, routeId: undefined, limit: 10 };
      const zone = { from: now - day, before: now };
      const filters: PaymentFilter[] = [
        {},
        { payer },
        { state: "failed" },
        { state: "confirmed" },
        { network, asset: payTo },
        { createdFrom: now - day, createdBefore: now },
        { cursor: "b" },
      ];
      for (const filter of filters) {
        const query = selectArchived(ledger, filter, { ...bounds, zone });
        const { sql: text, parameters } = query.compile();
        const { rows } = await opened.database.kysely.executeQuery<{ detail: string }>(
          CompiledQuery.raw(`explain query plan ${text}`, [...parameters]),
        );
        const plan = rows.map(({ detail }) => detail).join("; ");
        expect(plan).toMatch(
          /^SEARCH archived_payments USING (PRIMARY KEY|INDEX \w+) \(.*id>\? AND id<\?\)$/,
        );
      }
    });
  }

  it("has another process that archives the same payments find none", async () => {
    const { token } = await settle();
    await deliverPayment(ledger, token);
    now += 2 * day;
    const bounds = { now, before: now - day, undeliveredBefore: undefined, limit: 10 };
    const steps = await Promise.all(
      [1, 2, 3].map(() => archivePayments(ledger, { after: "", ...bounds })),
    );
    expect(steps.reduce((sum, { ended }) => sum + ended, 0)).toBe(1);
    expect(await known()).toHaveLength(1);
  });
});
