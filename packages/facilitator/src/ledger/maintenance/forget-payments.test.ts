import type { Hex } from "@coinslot/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createTestLedger, engines, type TestLedger } from "../../testing/settling-devnet.ts";
import { createLedger } from "../create-ledger.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { type LedgerDatabase, openLedger } from "../open-ledger.ts";
import { deliverPayment } from "../payments/deliver-payments.ts";
import { dropExpiredAnswers } from "../payments/keep-answers.ts";
import { recordOutcomes } from "../payments/record-outcomes.ts";
import { releasePayment } from "../payments/release-payment.ts";
import { reservePayment } from "../payments/reserve-payments.ts";
import type { ReserveWish } from "../payments/reserve-request.ts";
import { getPayments, listPayments } from "../queries/list-payments.ts";
import { findHashes, findHighestNonce } from "../transactions/find-transactions.ts";
import { storeTransaction } from "../transactions/store-transaction.ts";
import { finaliseBlocks } from "../transactions/undo-blocks.ts";
import { closePayments } from "./expire-payments.ts";
import { type ForgetProgress, forgetPayments } from "./forget-payments.ts";
import { sendHeartbeat } from "./processes.ts";

const network = "eip155:9745";
const payer = `0x${"bb".repeat(20)}` satisfies Hex;
const payTo = `0x${"dd".repeat(20)}` satisfies Hex;
const relayer = `0x${"cc".repeat(20)}` satisfies Hex;
const order = { payTo, validAfter: 0n, signature: `0x${"11".repeat(65)}` } as const;
const start: ForgetProgress = { afterPayment: "", afterTransaction: "" };
const day = 86_400_000;

describe.each(engines)("retention in a ledger on %s", (engine) => {
  let place: TestLedger;
  let opened: LedgerDatabase;
  let ledger: LedgerContext;
  let now: number;
  let nonces = 0;

  beforeEach(async () => {
    now = 1_000 * day;
    place = await createTestLedger(engine);
    opened = await openLedger({ url: place.url, processId: "one" });
    ledger = createLedger({
      database: opened.database,
      processId: "one",
      now: () => now,
      heartbeatLeaseMs: 10_000,
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
    await finaliseBlocks(ledger, { network, blockHashes: [blockHash] });
    return { id: paymentId, token, transactionId: transaction.id };
  }

  const forget = (limit = 100, progress = start) =>
    forgetPayments(ledger, { progress, before: now - day, limit });
  const known = async () =>
    (await listPayments(ledger, { limit: 1000 })).payments.map(({ id }) => id);

  it("deletes payments past their retention, and the signed forms of their transactions", async () => {
    const { id, token, transactionId } = await settle();
    await deliverPayment(ledger, token);
    const { token: given, paymentId } = await reserve();
    await releasePayment(ledger, { token: given, payer, countsAgainstPayer: false });
    now += day;
    expect(await forget()).toMatchObject({ payments: 0 });
    expect(await known()).toHaveLength(2);
    now += 1;
    expect(await forget()).toMatchObject({ payments: 2, progress: start });
    expect(await getPayments(ledger, [id, paymentId])).toEqual([]);
    expect(await findHashes(ledger, transactionId)).toEqual([]);
    expect(await findHighestNonce(ledger, { network, relayer })).toBe(nonces - 1);
    expect(await opened.database.kysely.selectFrom("orders").selectAll().execute()).toEqual([]);
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
    expect(await forget()).toMatchObject({ payments: 0 });
    const kept = [
      undelivered.id,
      valid.id,
      answered.id,
      failed.paymentId,
      queued.paymentId,
      released.paymentId,
    ];
    expect(await known()).toEqual(expect.arrayContaining(kept));

    await closePayments(ledger, [failed.paymentId]);
    await deliverPayment(ledger, undelivered.token);
    now += 2 * day;
    await dropExpiredAnswers(ledger);
    await forget();
    expect(await known()).not.toContain(failed.paymentId);
    expect(await known()).not.toContain(answered.id);
    expect(await known()).not.toContain(undelivered.id);
    expect(await known()).toContain(valid.id);
  });

  it("continues where it stopped, a few rows at a time", async () => {
    const stays = await settle();
    for (let index = 0; index < 5; index += 1) {
      now += 1;
      const { token } = await reserve();
      await releasePayment(ledger, { token, payer, countsAgainstPayer: false });
    }
    now += 2 * day;
    const first = await forget(3);
    expect(first.payments).toBe(2);
    const second = await forget(3, first.progress);
    expect(second).toMatchObject({ payments: 3 });
    expect(await known()).toEqual([stays.id]);
    expect((await forget(3, second.progress)).progress).toEqual(start);
  });

  it("reads no more rows than its limit, even if none is old enough", async () => {
    const { paymentId: young } = await reserve();
    now += 1;
    const { token } = await reserve();
    await releasePayment(ledger, { token, payer, countsAgainstPayer: false });
    now += 2 * day;
    await opened.database.kysely
      .updateTable("payments")
      .set({ created_at: now })
      .where("id", "=", young)
      .execute();
    expect(await forget(1)).toEqual({ payments: 0, progress: start });
    expect(await known()).toHaveLength(2);
  });
});
