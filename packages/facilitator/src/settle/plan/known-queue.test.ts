import { beforeEach, describe, expect, it } from "vitest";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import { releaseAbandoned } from "../../ledger/maintenance/processes.ts";
import { enqueuePayment } from "../../ledger/payments/enqueue-payments.ts";
import { reservePayment } from "../../ledger/payments/reserve-payments.ts";
import type { ReserveWish } from "../../ledger/payments/reserve-request.ts";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import { readQueued } from "../../ledger/queries/find-queued.ts";
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
import { createKnownQueues, type KnownQueue, type KnownQueues } from "./known-queue.ts";

const { join, silence, wait } = ledgerForEachTest("sqlite");
let ledger: LedgerContext;
let reads: number;
/** Holds up, or breaks, the reading of the queue. */
let beforeRead: () => Promise<void>;
let queues: KnownQueues;
let queue: KnownQueue;
/** Milliseconds of the process's clock. */
let time: number;

beforeEach(async () => {
  ledger = await join("one");
  reads = 0;
  time = 0;
  beforeRead = async () => undefined;
  queues = createKnownQueues({
    network,
    clock: { now: () => time },
    maxHeld: 8,
    ledger: afterReads(ledger, async () => {
      reads += 1;
      await beforeRead();
    }),
  });
  queue = queues.shared;
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

/** Sweeps beside these other processes that settle their own payments. */
async function sweep(...settlers: string[]): Promise<void> {
  await queues.sweep((processId) => (settlers.includes(processId) ? 2_000 : 0));
}

/** Settles a payment as another process does. */
async function carry(id: string, nonce = 0): Promise<void> {
  const lease = await takeLease(ledger);
  const fingerprint = "GET /a";
  const record = { ...transaction(nonce, []), payments: [{ id, fingerprint }] };
  expect(await storeTransaction(ledger, lease, record)).toBe("stored");
  await ledger.leases.release(lease);
}

describe("the known queue of a process", () => {
  it("holds the payments of this process as the ledger has them, and reads none of them", async () => {
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1) ids.push(await queueHere());
    await queueElsewhere(await join("two"));
    expect(await first()).toEqual(ids);
    expect(await first(4)).toEqual(ids.slice(0, 4));
    expect([queue.count(64), queue.count(3), reads]).toEqual([5, 3, 0]);
    const [known, stored] = [await queue.first(64), await readQueued(ledger, { network, ids })];
    expect(known.map(({ payment, order }) => ({ ...payment, order }))).toMatchObject(
      stored.map(({ payment, order }) => {
        const { authorization, value, validBefore, fingerprint, unusedAtBlock, attempts } = payment;
        const { id, settlesAlone, transactionId, inclusion } = payment;
        const facts = { id, authorization, value, validBefore, fingerprint, unusedAtBlock };
        return { ...facts, attempts, settlesAlone, transactionId, inclusion, order };
      }),
    );
  });

  it("drops the payments that a transaction carries", async () => {
    const [a, b] = [await queueHere(), await queueHere()];
    queue.remove([a]);
    expect(await first()).toEqual([b]);
    expect([queue.count(64), reads]).toEqual([1, 0]);
  });

  it("reads adopted payments once, each into its lane, in the order of their creation", async () => {
    const two = await join("two");
    const a = await queueElsewhere(two);
    wait(1);
    const alone = await queueElsewhere(two, { gasAtRisk: 1_000n });
    wait(1);
    const b = await queueElsewhere(two);
    wait(1);
    const own = await queueHere();
    queues.adopt([b, alone, a]);
    expect(await first()).toEqual([a, b, own]);
    expect(idsOf(await queues.alone.first(64))).toEqual([alone]);
    expect(reads).toBe(1);
  });

  it("forgets an adopted payment that is not queued any more", async () => {
    const id = await queueElsewhere(await join("two"));
    await carry(id);
    queues.adopt([id, "an unknown id"]);
    expect(queue.count(64)).toBe(2);
    expect(await first()).toEqual([]);
    expect(queue.count(64)).toBe(0);
  });

  it("reads payments of a lost race again, and those alone", async () => {
    const [lost, kept] = [await queueHere(), await queueHere()];
    const [doubted] = await queue.first(1);
    await carry(lost);
    queue.doubt(doubted ? [doubted] : []);
    expect(await first()).toEqual([kept]);
    expect(reads).toBe(1);
  });

  it("reads all payments again once it is invalidated", async () => {
    const [carried, kept] = [await queueHere(), await queueHere()];
    await carry(carried);
    queue.invalidate();
    expect(await first()).toEqual([kept]);
  });

  it("leaves the payments of a settling process to it as long as the patience lasts", async () => {
    const id = await queueElsewhere(await join("two"));
    await sweep("two");
    // An overloaded process sweeps with each plan.
    for (time = 500; time < 2_000; time += 100) await sweep("two");
    expect(await first()).toEqual([]);
    await sweep("two");
    expect(await first()).toEqual([id]);
  });

  it("adopts with the first sweep what no living process is to settle", async () => {
    const ofDead = await queueElsewhere(await join("two"));
    wait(1);
    const unheld = await queueElsewhere(await join("three"));
    await ledger.write((tx) =>
      tx
        .updateTable("payments")
        .set({ token: null, owner: null })
        .where("id", "=", unheld)
        .execute(),
    );
    wait(1);
    const ownButDropped = await queueElsewhere(ledger);
    await queueElsewhere(await join("four"));
    await sweep("three", "four");
    expect(await first()).toEqual([ofDead, unheld, ownButDropped]);
  });

  it("drops with a sweep what another process has settled, and nothing that is queued meanwhile", async () => {
    const [settled, kept] = [await queueHere(), await queueHere()];
    await carry(settled);
    let late = "";
    beforeRead = async () => {
      beforeRead = async () => undefined;
      late = await queueHere();
    };
    await sweep();
    expect(await first()).toEqual([kept, late]);
  });

  it("is bounded, and finds the others in the ledger once there is room", async () => {
    const ids: string[] = [];
    for (let count = 0; count < 10; count += 1) ids.push(await queueHere());
    expect(await first()).toEqual(ids.slice(0, 8));
    expect(queues.hasDropped()).toBe(false);
    for (const [index, id] of ids.slice(0, 5).entries()) await carry(id, index);
    queue.remove(ids.slice(0, 5));
    expect(queues.hasDropped()).toBe(true);
    await sweep();
    expect(await first()).toEqual(ids.slice(5));
    expect(queues.hasDropped()).toBe(false);
  });

  it("reads a payment again that is adopted during a reading", async () => {
    const two = await join("two");
    const a = await queueElsewhere(two);
    let b = "";
    beforeRead = async () => {
      beforeRead = async () => undefined;
      b = await queueElsewhere(two);
      queues.adopt([b]);
    };
    queues.adopt([a]);
    expect((await first()).sort()).toEqual([a, b].sort());
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
    queues.adopt([late.payment.id]);
    for (const [queued] of [await queue.first(64), await queue.first(64)])
      expect(queued?.payment).toMatchObject({ value: 1n, fingerprint: "GET /a for 1" });
  });

  it("keeps adopted payments whose reading failed", async () => {
    const id = await queueElsewhere(await join("two"));
    queues.adopt([id]);
    beforeRead = async () => {
      beforeRead = async () => undefined;
      throw new Error("the disk is full");
    };
    await expect(first()).rejects.toThrow("the disk is full");
    expect(await first()).toEqual([id]);
  });
});
