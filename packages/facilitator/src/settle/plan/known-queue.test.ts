import { beforeEach, describe, expect, it } from "vitest";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import { releaseAbandoned } from "../../ledger/maintenance/processes.ts";
import { enqueuePayment } from "../../ledger/payments/enqueue-payments.ts";
import { reservePayment } from "../../ledger/payments/reserve-payments.ts";
import type { ReserveWish } from "../../ledger/payments/reserve-request.ts";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import { findQueued } from "../../ledger/queries/find-queued.ts";
import { storeTransaction } from "../../ledger/transactions/store-transaction.ts";
import { afterReads } from "../../testing/after-reads.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
  authorization,
  network,
  order,
  payer,
  queue as queueElsewhere,
  takeLease,
  transaction,
  wish,
} from "../../testing/ledger-payments.ts";
import { createKnownQueue, type KnownQueue } from "./known-queue.ts";

const { join, silence, wait } = ledgerForEachTest("sqlite");
let ledger: LedgerContext;
let reads: number;
/** Holds up, or breaks, the reading of the queue. */
let beforeRead: () => Promise<void>;
let queue: KnownQueue;

beforeEach(async () => {
  ledger = await join("one");
  reads = 0;
  beforeRead = async () => undefined;
  queue = createKnownQueue({
    network,
    lane: "shared",
    maxKnown: 256,
    ledger: afterReads(ledger, async ([first]) => {
      if (first && "count" in first) return;
      reads += 1;
      await beforeRead();
    }),
  });
});

/** Queues a payment, and returns the known queue's content. */
async function enqueue(wanted: ReserveWish): Promise<OrderedPayment> {
  const reserved = await reservePayment(ledger, wanted);
  if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
  const queued = await enqueuePayment(ledger, { token: reserved.token, payer, order });
  if (queued === undefined || "authorization" in queued) throw new Error("It was not queued");
  return {
    order,
    payment: {
      kind: "eip3009",
      authorization: wanted.id,
      transactionId: undefined,
      inclusion: undefined,
      ...queued,
    },
  };
}

/** Queues a payment as this process does. */
async function queueHere(): Promise<string> {
  const queued = await enqueue(wish());
  queue.add(queued);
  // Creation is counted in milliseconds.
  wait(1);
  return queued.payment.id;
}

function idsOf(queued: readonly OrderedPayment[]): string[] {
  return queued.map(({ payment }) => payment.id);
}

async function first(limit = 64): Promise<string[]> {
  return idsOf(await queue.first(limit));
}

describe("the known queue of a process", () => {
  it("starts with the ledger's content", async () => {
    const id = await queueElsewhere(ledger);
    expect(await queue.count(64)).toBe(1);
    expect(await first()).toEqual([id]);
  });

  it("equals the ledger's for this process's payments, without reading them again", async () => {
    const ids = [await queueHere()];
    expect(await first()).toEqual(ids);
    for (let count = 0; count < 9; count += 1) ids.push(await queueHere());
    expect(await first()).toEqual(ids);
    expect(await queue.count(64)).toBe(10);
    expect(await queue.count(5)).toBe(5);
    expect(await first(4)).toEqual(ids.slice(0, 4));
    expect(reads).toBe(1);
    const [known, stored] = [
      await queue.first(64),
      await findQueued(ledger, { network, lane: "shared", limit: 64 }),
    ];
    expect(known.map(({ payment, order }) => ({ ...payment, order }))).toMatchObject(
      stored.map(({ payment, order }) => {
        const { authorization, value, validBefore, fingerprint, unusedAtBlock, attempts } = payment;
        const { id, settlesAlone, transactionId, inclusion } = payment;
        const facts = {
          id,
          authorization,
          value,
          validBefore,
          fingerprint,
          unusedAtBlock,
          attempts,
        };
        return { ...facts, settlesAlone, transactionId, inclusion, order };
      }),
    );
  });

  it("drops the payments that a transaction carries", async () => {
    await first();
    const [a, b] = [await queueHere(), await queueHere()];
    const [carried] = await queue.first(1);
    if (carried === undefined) throw new Error("It knows of none");
    const record = { ...transaction(0, []), payments: [carried.payment] };
    expect(await storeTransaction(ledger, await takeLease(ledger), record)).toBe("stored");
    queue.remove([carried]);
    expect(carried.payment.id).toBe(a);
    expect(await first()).toEqual([b]);
    expect(await queue.count(64)).toBe(1);
    expect(reads).toBe(1);
  });

  it("reads other processes' payments exactly when it is invalidated", async () => {
    const here = await queueHere();
    await first();
    const elsewhere = await queueElsewhere(ledger);
    expect(await first()).toEqual([here]);
    queue.invalidate();
    expect(await queue.count(64)).toBe(2);
    expect(await first()).toEqual([here, elsewhere]);
  });

  it("takes the head of a long queue in one reading, and loses none behind it", async () => {
    const ids: string[] = [];
    for (let count = 0; count < 300; count += 1) ids.push(await queueHere());
    const taken: string[] = [];
    const lease = await takeLease(ledger);
    for (let nonce = 0; taken.length < 301; nonce += 1) {
      const batch = await queue.first(50);
      expect(await queue.count(50)).toBe(Math.min(50, 301 - taken.length));
      const payments = batch.map(({ payment }) => payment);
      const record = { ...transaction(nonce, []), id: `of nonce ${nonce}`, payments };
      expect(await storeTransaction(ledger, lease, record)).toBe("stored");
      queue.remove(batch);
      taken.push(...idsOf(batch));
      if (nonce === 0) ids.push(await queueHere());
    }
    expect(taken).toEqual(ids);
    expect(await first()).toEqual([]);
    expect(reads).toBeLessThanOrEqual(3);
  });

  it("is bounded, and finds the others in the ledger", async () => {
    await first();
    const ids: string[] = [];
    for (let count = 0; count < 260; count += 1) ids.push(await queueHere());
    expect(await first(256)).toEqual(ids.slice(0, 256));
    expect(reads).toBe(1);
    expect(await first(300)).toEqual(ids);
  });

  it("keeps payments that are queued during a reading", async () => {
    let queued = "";
    beforeRead = async () => {
      beforeRead = async () => undefined;
      queued = await queueHere();
    };
    expect(await first()).toEqual([]);
    expect(await first()).toEqual([queued]);
    expect(reads).toBe(1);
  });

  it("prefers the row it has read to a late notice of the row's earlier authorization", async () => {
    const two = await join("two");
    const id = authorization();
    const wanted = wish({ id, fingerprint: "GET /a for 10", value: 10n });
    const late = await enqueue(wanted);
    await silence("one");
    await releaseAbandoned(two);
    await queueElsewhere(two, { id, fingerprint: "GET /a for 1", value: 1n });
    beforeRead = async () => queue.add(late);
    for (const [queued] of [await queue.first(64), await queue.first(64)])
      expect(queued?.payment).toMatchObject({ value: 1n, fingerprint: "GET /a for 1" });
  });

  it("reads once more when it is invalidated during a reading", async () => {
    let queued = "";
    beforeRead = async () => {
      beforeRead = async () => undefined;
      queued = await queueElsewhere(ledger);
      queue.invalidate();
    };
    expect(await first()).toEqual([]);
    expect(await first()).toEqual([queued]);
  });

  it("is empty after a failed reading", async () => {
    const here = await queueHere();
    beforeRead = async () => {
      beforeRead = async () => undefined;
      throw new Error("the disk is full");
    };
    await expect(first()).rejects.toThrow("the disk is full");
    expect(await first()).toEqual([here]);
  });
});
