import type { AuthorizationId, Hex } from "@coinslot/protocol";
import type { Database } from "@coinslot/storage";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createTestLedger, engines, type TestLedger } from "../testing/settling-devnet.ts";
import { createLedger, type Ledger, type ReserveWish } from "./ledger.ts";
import type { LedgerSchema } from "./ledger-schema.ts";
import { type LedgerDatabase, openLedger } from "./open-ledger.ts";

const network = "eip155:9745";
const asset = `0x${"aa".repeat(20)}` satisfies Hex;
const payer = `0x${"bb".repeat(20)}` satisfies Hex;
const relayer = `0x${"cc".repeat(20)}` satisfies Hex;
const order = {
  payTo: `0x${"dd".repeat(20)}`,
  validAfter: 0n,
  signature: `0x${"11".repeat(65)}`,
} satisfies ReserveWish["order"];

let nonces = 0;
function authorization(changes: Partial<AuthorizationId> = {}): AuthorizationId {
  nonces += 1;
  return { network, asset, payer, nonce: hash(nonces), ...changes };
}

function hash(number: number): Hex {
  return `0x${number.toString(16).padStart(64, "0")}`;
}

function wish(changes: Partial<ReserveWish> = {}): ReserveWish {
  const id = changes.id ?? authorization();
  return {
    id,
    fingerprint: "GET /a",
    value: 10n,
    validBefore: 2n ** 256n - 1n,
    payTo: order.payTo,
    ...changes,
  };
}

describe.each(engines)("the ledger on %s", (engine) => {
  let place: TestLedger;
  let opened: LedgerDatabase;
  let now = 1_000_000;

  beforeEach(async () => {
    place = await createTestLedger(engine);
    opened = await openLedger({ url: place.url, processId: "first" });
    now = 1_000_000;
  });

  afterEach(async () => {
    await opened.close();
    await place.drop();
  });

  async function join(processId: string): Promise<Ledger> {
    const ledger = createLedger({
      database: opened.database,
      processId,
      now: () => now,
      heartbeatLeaseMs: 10_000,
      keepAnswersMs: 60_000,
      releaseLimit: { count: 3, windowMs: 1_000 },
    });
    await ledger.beatHeart();
    return ledger;
  }

  /** Makes a process silent for longer than its lease, on the database's clock. */
  async function silence(database: Database<LedgerSchema>, processId: string): Promise<void> {
    await sql`update processes set heartbeat_at = heartbeat_at - 60000 where id = ${processId}`.execute(
      database.kysely,
    );
  }

  async function takeLease(ledger: Ledger) {
    const lease = await ledger.leases.acquire({
      name: "relayer",
      owner: ledger.processId,
      ttlMs: 60_000,
    });
    if (lease === undefined) throw new Error("The lease is taken");
    return lease;
  }

  function transaction(nonce: number, paymentIds: readonly string[]) {
    return {
      id: `transaction ${nonce} of ${paymentIds.length}`,
      network,
      relayer,
      nonce,
      gasLimit: 100_000n,
      paymentIds,
      broadcast: {
        hash: hash(1_000 + nonce),
        raw: "0x02",
        content: "payments",
        maxFeePerGas: 7n,
        maxPriorityFeePerGas: 1n,
      },
    } as const;
  }

  async function queue(ledger: Ledger, changes: Partial<ReserveWish> = {}): Promise<string> {
    const reserved = await ledger.reserve(wish({ order, ...changes }));
    if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
    return reserved.paymentId;
  }

  async function submit(ledger: Ledger, changes: Partial<ReserveWish> = {}): Promise<string> {
    const id = await queue(ledger, changes);
    const lease = await takeLease(ledger);
    expect(await ledger.storeTransaction(lease, transaction(0, [id]))).toBe("stored");
    await ledger.leases.release(lease);
    return id;
  }

  async function stateOf(ledger: Ledger, id: string): Promise<string | undefined> {
    return (await ledger.get([id]))[0]?.state;
  }

  const inclusion = { transactionHash: hash(1_000), blockNumber: 5, blockHash: hash(5) };

  it("lets one of many racers have an authorization, across processes", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const wanted = wish();
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, index) => (index % 2 ? one : two).reserve(wanted)),
    );
    expect(results.filter(({ outcome }) => outcome === "reserved")).toHaveLength(1);
    expect(results.filter(({ outcome }) => outcome === "in_use")).toHaveLength(9);
  });

  it("counts a run as free whose payment failed on the chain, and not one that is pending", async () => {
    const ledger = await join("one");
    for (const [run, fails] of [false, true, true, true].entries()) {
      const nonce = hash(100 + run);
      const request = wish({ order, id: { ...wish().id, nonce } });
      const reserved = await ledger.reserve(request);
      if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
      const { paymentId, token } = reserved;
      const reason = "invalid_exact_evm_transaction_failed";
      if (fails) await ledger.recordOutcomes([{ failed: [{ ids: [paymentId], reason }] }]);
      const { payer } = request.id;
      await ledger.release({ token, payer, countsAgainstPayer: "if_failed" });
      // Once only: its token is gone.
      await ledger.release({ token, payer, countsAgainstPayer: "if_failed" });
    }
    const other = wish({ id: { ...wish().id, nonce: hash(200) } });
    expect(await ledger.reserve(other)).toEqual({ outcome: "released_too_often" });
  });

  it("forgets that an answer went out when its payment is reserved again", async () => {
    const ledger = await join("one");
    const request = wish({ order });
    const first = await ledger.reserve(request);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    await ledger.deliver(first.token);
    const reason = "invalid_exact_evm_transaction_failed";
    await ledger.recordOutcomes([{ failed: [{ ids: [first.paymentId], reason }] }]);
    const again = await ledger.reserve(request);
    expect(again.outcome).toBe("reserved");
    expect((await ledger.get([first.paymentId]))[0]?.deliveredAt).toBeUndefined();
  });

  it("keeps a nonce of another payer, asset or network apart", async () => {
    const ledger = await join("one");
    const { id } = wish();
    const others: Partial<AuthorizationId>[] = [
      {},
      { payer: `0x${"be".repeat(20)}` },
      { asset: `0x${"ab".repeat(20)}` },
      { network: "eip155:988" },
    ];
    const results = await Promise.all(
      others.map((other) => ledger.reserve(wish({ id: { ...id, ...other } }))),
    );
    expect(results.map(({ outcome }) => outcome)).toEqual(others.map(() => "reserved"));
  });

  it("gives a released authorization to whoever comes next", async () => {
    const ledger = await join("one");
    const wanted = wish();
    const first = await ledger.reserve(wanted);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    await ledger.release({ token: first.token, payer, countsAgainstPayer: false });
    expect(await ledger.lookUp(wanted)).toMatchObject({ standing: "free" });
    const other = { ...wanted, fingerprint: "GET /b" };
    expect(await ledger.reserve(other)).toMatchObject({ outcome: "reserved" });
  });

  it("frees what a dead process had reserved, and its token is worth nothing afterwards", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const wanted = wish();
    const first = await one.reserve(wanted);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    expect(await two.reserve(wanted)).toMatchObject({ outcome: "in_use" });
    await silence(opened.database, "one");
    const second = await two.reserve(wanted);
    expect(second).toMatchObject({ outcome: "reserved", paymentId: first.paymentId });
    expect(await one.enqueue({ token: first.token, payer, order })).toBeUndefined();
    await one.release({ token: first.token, payer, countsAgainstPayer: true });
    expect(await stateOf(two, first.paymentId)).toBe("reserved");
  });

  it("lets a process that was frozen reserve as one that lives, before its heart has beaten again", async () => {
    const one = await join("one");
    const two = await join("two");
    for (const { isForgotten } of [{ isForgotten: false }, { isForgotten: true }]) {
      await silence(opened.database, "one");
      if (isForgotten) await two.releaseDead();
      const id = authorization();
      expect(await one.reserve(wish({ id }))).toMatchObject({ outcome: "reserved" });
      expect(await two.reserve(wish({ id }))).toMatchObject({ outcome: "in_use" });
      expect(await two.releaseDead()).toEqual({ reserved: 0, queued: [] });
    }
  });

  it("releases what a dead process had queued, unless its answer is kept or somebody carries it", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const queued = await queue(one);
    const carried = await submit(one);
    const reserved = await one.reserve(wish({ keyHash: "key" }));
    if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
    const answer = { keyHash: "key", sealed: Uint8Array.of(1, 2, 3) };
    await one.enqueue({ token: reserved.token, payer, order, answer });
    await silence(opened.database, "one");
    expect(await two.releaseDead()).toMatchObject({
      reserved: 0,
      queued: [{ id: queued, state: "released" }],
    });
    expect(await stateOf(two, queued)).toBe("released");
    expect(await stateOf(two, carried)).toBe("submitted");
    expect(await stateOf(two, reserved.paymentId)).toBe("queued");
  });

  it("refuses to promise a balance twice, under racing reservations of one payer", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const balance = { amount: 25n, blockNumber: 4n };
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, index) => (index % 2 ? one : two).reserve(wish({ balance }))),
    );
    expect(results.filter(({ outcome }) => outcome === "reserved")).toHaveLength(2);
    expect(results.filter(({ outcome }) => outcome === "over_promised")).toHaveLength(6);
  });

  it("counts a confirmed payment against a balance that was read before its block, and not after", async () => {
    const ledger = await join("one");
    const id = await submit(ledger, { balance: { amount: 10n, blockNumber: 4n } });
    await ledger.recordOutcomes([{ confirmed: { ids: [id], inclusion } }]);
    const before = await ledger.reserve(wish({ balance: { amount: 19n, blockNumber: 4n } }));
    expect(before).toMatchObject({ outcome: "over_promised" });
    const after = await ledger.reserve(wish({ balance: { amount: 19n, blockNumber: 5n } }));
    expect(after).toMatchObject({ outcome: "reserved" });
  });

  it("does not count what is missing in the balance already, though no block was read yet", async () => {
    const ledger = await join("one");
    const mined = await submit(ledger);
    await queue(ledger);
    const promised = await ledger.findPromised({ network, asset, payer, limit: 10 });
    expect(promised.map(({ state }) => state).sort()).toEqual(["queued", "submitted"]);
    const exact = wish({ balance: { amount: 20n, blockNumber: 5n } });
    expect(await ledger.reserve(exact)).toMatchObject({ outcome: "over_promised" });
    expect(await ledger.reserve(exact, [mined])).toMatchObject({ outcome: "reserved" });
    const beyond = wish({ balance: { amount: 20n, blockNumber: 5n } });
    expect(await ledger.reserve(beyond, [mined])).toMatchObject({ outcome: "over_promised" });
  });

  it("limits how often a payer may let handlers run for nothing, and forgets it after a while", async () => {
    const ledger = await join("one");
    const wanted = wish();
    const again = async () => {
      const reserved = await ledger.reserve(wanted);
      if (reserved.outcome === "reserved") {
        await ledger.release({ token: reserved.token, payer, countsAgainstPayer: true });
      }
      return reserved.outcome;
    };
    expect([await again(), await again(), await again()]).toEqual(Array(3).fill("reserved"));
    expect(await again()).toBe("released_too_often");
    expect(
      await ledger.reserve(wish({ id: authorization({ payer: `0x${"ee".repeat(20)}` }) })),
    ).toMatchObject({
      outcome: "reserved",
    });
    now += 1_001;
    expect(await again()).toBe("reserved");
  });

  it("resumes a submitted payment for the same request, when nobody runs for it", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const id = authorization();
    const paymentId = await submit(one, { id });
    const same = wish({ id });
    expect(await two.lookUp(same)).toMatchObject({ standing: "in_use" });
    await silence(opened.database, "one");
    expect(await two.lookUp(same)).toMatchObject({ standing: "resumable" });
    expect(await two.lookUp({ ...same, fingerprint: "GET /b" })).toMatchObject({
      standing: "in_use",
    });
    expect(await two.reserve(same)).toMatchObject({
      outcome: "resumed",
      payment: { id: paymentId },
    });
    expect(await two.reserve(same)).toMatchObject({ outcome: "in_use" });
  });

  it("gives a kept answer to its key alone, also after delivery, until its time is over", async () => {
    const ledger = await join("one");
    const wanted = wish({ keyHash: "key" });
    const reserved = await ledger.reserve(wanted);
    if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
    const answer = { keyHash: "key", sealed: Uint8Array.of(1, 2, 3) };
    await ledger.enqueue({ token: reserved.token, payer, order, answer });
    await ledger.recordOutcomes([{ confirmed: { ids: [reserved.paymentId], inclusion } }]);
    await ledger.deliver(reserved.token);
    const found = await ledger.lookUp(wanted);
    expect(found.standing).toBe("delivered");
    expect([...(found.answer?.sealed ?? [])]).toEqual([1, 2, 3]);
    const { keyHash: _, ...keyless } = wanted;
    expect(await ledger.lookUp(keyless)).toMatchObject({
      standing: "delivered",
      answer: undefined,
    });
    expect(await ledger.lookUp({ ...wanted, fingerprint: "GET /b" })).toMatchObject({
      standing: "key_conflict",
    });
    now += 60_001;
    expect(await ledger.lookUp(wanted)).toMatchObject({ standing: "delivered", answer: undefined });
    await ledger.dropExpiredAnswers();
  });

  it("refuses a key that belongs to another payment of the payer", async () => {
    const ledger = await join("one");
    await ledger.reserve(wish({ keyHash: "key" }));
    expect(await ledger.reserve(wish({ keyHash: "key" }))).toEqual({ outcome: "key_conflict" });
    const elsewhere = authorization({ payer: `0x${"ef".repeat(20)}` });
    expect(await ledger.reserve(wish({ id: elsewhere, keyHash: "key" }))).toMatchObject({
      outcome: "reserved",
    });
  });

  it("resumes a payment whose buyer sent a key with that key only", async () => {
    const ledger = await join("one");
    const id = authorization();
    const first = await ledger.reserve(wish({ id, order, keyHash: "key" }));
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    await ledger.release({ token: first.token, payer, countsAgainstPayer: false });
    expect(await ledger.lookUp(wish({ id }))).toMatchObject({ standing: "in_use" });
    expect(await ledger.lookUp(wish({ id, keyHash: "other" }))).toMatchObject({
      standing: "in_use",
    });
    expect(await ledger.lookUp(wish({ id, keyHash: "key" }))).toMatchObject({
      standing: "resumable",
    });
  });

  it("stores a transaction, its nonce and the move of its payments together or not at all", async () => {
    const ledger = await join("one");
    const lease = await takeLease(ledger);
    const [a, b] = [await queue(ledger), await queue(ledger)];
    expect(await ledger.storeTransaction(lease, transaction(0, [a]))).toBe("stored");
    expect(await ledger.storeTransaction(lease, transaction(1, [a, b]))).toBe("payments_changed");
    expect(await stateOf(ledger, b)).toBe("queued");
    expect(await ledger.storeTransaction(lease, { ...transaction(0, [b]), id: "other" })).toBe(
      "nonce_taken",
    );
    expect(await stateOf(ledger, b)).toBe("queued");
    expect(await ledger.findHighestNonce({ network, relayer })).toBe(0);
    const open = await ledger.findOpenTransactions({ network, relayer });
    expect(open).toMatchObject([
      { nonce: 0, broadcasts: [{ hash: hash(1_000) }], payments: [{ payment: { id: a }, order }] },
    ]);
  });

  it("stores nothing for an owner whose lease another has taken", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const lease = await takeLease(one);
    const id = await queue(one);
    await one.leases.release(lease);
    const newer = await takeLease(two);
    expect(await one.storeTransaction(lease, transaction(0, [id]))).toBe("lease_lost");
    expect(await stateOf(one, id)).toBe("queued");
    expect(await two.storeTransaction(newer, transaction(0, [id]))).toBe("stored");
    const replacement = { ...transaction(0, []).broadcast, hash: hash(2_000), maxFeePerGas: 9n };
    const of = { id: transaction(0, [id]).id, broadcast: replacement };
    expect(await one.storeReplacement(lease, of)).toBe("lease_lost");
    expect(await two.storeReplacement(newer, of)).toBe("stored");
    expect(await two.findHashes(of.id)).toEqual([hash(2_000), hash(1_000)]);
  });

  it("confirms a failed payment that was executed after all, and never fails a confirmed one", async () => {
    const ledger = await join("one");
    const id = await submit(ledger);
    const reason = "invalid_exact_evm_transaction_failed";
    await ledger.recordOutcomes([{ failed: [{ ids: [id], reason, inclusion }] }]);
    expect(await ledger.get([id])).toMatchObject([{ state: "failed", reason }]);
    expect(await ledger.recordOutcomes([{ confirmed: { ids: [id], inclusion } }])).toMatchObject([
      { id, state: "confirmed", inclusion },
    ]);
    expect(await ledger.recordOutcomes([{ failed: [{ ids: [id], reason }] }])).toEqual([]);
    expect(await ledger.get([id])).toMatchObject([
      { state: "confirmed", reason: undefined, inclusion },
    ]);
  });

  describe("a failed payment that is reserved again", () => {
    const reason = "invalid_exact_evm_transaction_failed";
    /** Submitted, failed, and brought again. */
    async function failAndReserve(ledger: Ledger, change: Partial<ReserveWish> = {}) {
      const wanted = wish({ balance: { amount: 10n, blockNumber: 4n }, ...change });
      const id = await submit(ledger, wanted);
      await ledger.recordOutcomes([{ failed: [{ ids: [id], reason, inclusion }] }]);
      const again = await ledger.reserve(wanted);
      if (again.outcome !== "reserved") throw new Error(again.outcome);
      expect(await stateOf(ledger, id)).toBe("reserved");
      return { id, token: again.token };
    }

    async function watched(ledger: Ledger) {
      const found = await ledger.findFailed({ network, limit: 10 });
      return found.map(({ payment, order: { signature } }) => ({ id: payment.id, signature }));
    }

    it("is watched again once it is released", async () => {
      const ledger = await join("one");
      const { id, token } = await failAndReserve(ledger);
      expect(await watched(ledger)).toEqual([]);
      await ledger.release({ token, payer, countsAgainstPayer: false });
      expect(await ledger.get([id])).toMatchObject([{ state: "failed", reason, carried: 1 }]);
      expect(await watched(ledger)).toEqual([{ id, signature: order.signature }]);
      expect(await ledger.recordOutcomes([{ confirmed: { ids: [id], inclusion } }])).toMatchObject([
        { id, state: "confirmed", inclusion },
      ]);
    });

    it.each(["reserved", "queued"])("is watched again when its process dies: %s", async (state) => {
      const [one, two] = [await join("one"), await join("two")];
      const { id, token } = await failAndReserve(one);
      const signature = `0x${"22".repeat(65)}` as const;
      if (state === "queued") await one.enqueue({ token, payer, order: { ...order, signature } });
      await silence(opened.database, "one");
      await two.releaseDead();
      expect(await ledgerState(two, id)).toEqual({ state: "failed", reason });
      const known = state === "queued" ? signature : order.signature;
      expect(await watched(two)).toEqual([{ id, signature: known }]);
    });

    it("is watched again when its time passes in the queue", async () => {
      const ledger = await join("one");
      const { id, token } = await failAndReserve(ledger, { validBefore: 100n });
      await ledger.enqueue({ token, payer, order });
      await ledger.expire({ network, before: 100n });
      expect(await stateOf(ledger, id)).toBe("failed");
      expect(await watched(ledger)).toHaveLength(1);
    });

    it.each<Partial<ReserveWish>>([{ payTo: relayer }, { value: 9n }, { validBefore: 99n }])(
      "does not give its place to another authorization with its nonce: %o",
      async (change) => {
        const ledger = await join("one");
        const wanted = wish();
        const id = await submit(ledger, wanted);
        await ledger.recordOutcomes([{ failed: [{ ids: [id], reason, inclusion }] }]);
        const other = { ...wanted, ...change };
        expect(await ledger.reserve(other)).toMatchObject({ outcome: "in_use" });
        await ledger.closePayments([id]);
        expect(await ledger.reserve(other)).toMatchObject({ outcome: "reserved" });
      },
    );
  });

  async function ledgerState(ledger: Ledger, id: string) {
    const [payment] = await ledger.get([id]);
    return { state: payment?.state, reason: payment?.reason };
  }

  it("takes back what stood in a block that left the chain, until it is final", async () => {
    const ledger = await join("one");
    const id = await submit(ledger);
    const settled = { id: transaction(0, [id]).id, inclusion, gasUsed: 50_000n };
    await ledger.recordOutcomes([{ confirmed: { ids: [id], inclusion } }], settled);
    expect(await ledger.findOpenTransactions({ network, relayer })).toEqual([]);
    expect(await ledger.findBlocks({ network })).toEqual([{ number: 5, hash: hash(5) }]);
    expect(await ledger.undoBlocks({ network, blockHashes: [hash(5)] })).toMatchObject([
      { id, wasDelivered: false },
    ]);
    expect(await stateOf(ledger, id)).toBe("submitted");
    expect(await ledger.findOpenTransactions({ network, relayer })).toHaveLength(1);
    await ledger.recordOutcomes([{ confirmed: { ids: [id], inclusion } }], settled);
    expect(await ledger.finaliseBlocks({ network, blockHashes: [hash(5)] })).toEqual([id]);
    expect(await ledger.undoBlocks({ network, blockHashes: [hash(5)] })).toEqual([]);
  });

  it("expires what is queued too long, and watches it where a transaction had carried it", async () => {
    const ledger = await join("one");
    const fresh = await queue(ledger, { validBefore: 100n });
    const carried = await submit(ledger, { validBefore: 100n });
    await ledger.recordOutcomes([{ requeued: { ids: [carried], isAlone: false } }]);
    const later = await queue(ledger, { validBefore: 101n });
    const ended = await ledger.expire({ network, before: 100n });
    expect(ended.map(({ id }) => id).sort()).toEqual([fresh, carried].sort());
    expect(await stateOf(ledger, fresh)).toBe("expired");
    expect(await stateOf(ledger, carried)).toBe("failed");
    expect(await stateOf(ledger, later)).toBe("queued");
    expect(await ledger.findFailed({ network, limit: 10 })).toMatchObject([
      { payment: { id: carried } },
    ]);
    await ledger.closePayments([carried]);
    expect(await ledger.findFailed({ network, limit: 10 })).toEqual([]);
  });

  it("lists payments page by page, and sums them", async () => {
    const ledger = await join("one");
    const ids: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      now += 1;
      ids.unshift(await queue(ledger, { value: 2n ** 255n }));
    }
    const first = await ledger.list({ limit: 3 });
    expect(first.payments.map(({ id }) => id)).toEqual(ids.slice(0, 3));
    const second = await ledger.list({ limit: 3, cursor: first.nextCursor });
    expect(second.payments.map(({ id }) => id)).toEqual(ids.slice(3));
    expect(second.nextCursor).toBeUndefined();
    expect((await ledger.list({ state: "failed" })).payments).toEqual([]);
    expect((await ledger.list({ payer: `0x${"BB".repeat(20)}` })).payments).toHaveLength(5);
    expect(await ledger.stats()).toEqual([
      { network, asset, state: "queued", count: 5, amount: 5n * 2n ** 255n },
    ]);
  });
});

describe("a ledger in a SQLite file", () => {
  it("belongs to one process, while readers may look", async () => {
    const place = await createTestLedger("sqlite");
    const first = await openLedger({ url: place.url, processId: "first" });
    await expect(openLedger({ url: place.url, processId: "second" })).rejects.toThrow(
      /Another process works on/,
    );
    const reader = await openLedger({ url: place.url, processId: "reader", readOnly: true });
    await reader.close();
    await first.close();
    const next = await openLedger({ url: place.url, processId: "next" });
    await next.close();
    await place.drop();
  });
});
