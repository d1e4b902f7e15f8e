import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
  hash,
  inclusion,
  network,
  order,
  payer,
  queue,
  stateOf,
  takeLease,
  transaction,
  wish,
} from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { releaseAbandoned } from "../maintenance/processes.ts";
import { storeTransaction } from "../transactions/store-transaction.ts";
import { undoBlocks } from "../transactions/undo-blocks.ts";
import { findRefusal } from "./admit-code.ts";
import { recordOutcomes } from "./record-outcomes.ts";
import { releasePayment } from "./release-payment.ts";
import { reservePayment } from "./reserve-payments.ts";

/** An execution by another sender, in the block of the transaction with nonce 0. */
const inAnother = { ...inclusion, transactionHash: hash(7_000) };

const other = `0x${"ee".repeat(20)}` as const;
const third = `0x${"ef".repeat(20)}` as const;
const fourth = `0x${"f0".repeat(20)}` as const;
type Payer = typeof other | typeof third | typeof fourth | typeof payer;
/** A third of what the ledgers of these tests may risk in a minute. */
const gasAtRisk = 300_000n;

const by = (from: Payer, changes = {}) => {
  const wished = wish();
  return { ...wished, id: { ...wished.id, payer: from }, gasAtRisk, ...changes };
};

async function carry(ledger: LedgerContext, id: string, nonce: number): Promise<void> {
  const lease = await takeLease(ledger);
  expect(await storeTransaction(ledger, lease, transaction(nonce, [id]))).toBe("stored");
  await ledger.leases.release(lease);
}

async function pay(ledger: LedgerContext, from: Payer, nonce: number): Promise<void> {
  const id = await queue(ledger, by(from, { order }));
  await carry(ledger, id, nonce);
  await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]);
}

async function hold(ledger: LedgerContext, from: Payer, changes = {}): Promise<string> {
  const held = await reservePayment(ledger, by(from, changes));
  if (held.outcome !== "reserved") throw new Error(held.outcome);
  return held.token;
}

async function burn(ledger: LedgerContext, id: string, nonce: number): Promise<void> {
  await carry(ledger, id, nonce);
  const reason = "invalid_exact_evm_transaction_failed";
  await recordOutcomes(ledger, [
    { failed: [{ ids: [id], reason, inclusion, burn: { payer, gas: 320_000n, isBlamed: true } }] },
  ]);
}

describe.each(engines)("a payer with code, on %s", (engine) => {
  const { join, age, silence } = ledgerForEachTest(engine);

  it("has one payment in flight, and one more per confirmed payment", async () => {
    const ledger = await join("one");
    const id = await queue(ledger, by(payer, { order }));
    const limited = { outcome: "code_limited", why: "too_many_open" };
    expect(await reservePayment(ledger, by(payer))).toMatchObject(limited);
    await carry(ledger, id, 0);
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]);
    expect(await reservePayment(ledger, by(payer))).toMatchObject({ outcome: "reserved" });
    expect(await reservePayment(ledger, by(payer))).toMatchObject({ outcome: "reserved" });
    expect(await reservePayment(ledger, by(payer))).toMatchObject(limited);
    // A payer without code is not asked for a record.
    const plain = { ...by(other), gasAtRisk: undefined };
    expect(await reservePayment(ledger, plain)).toMatchObject({ outcome: "reserved" });
  });

  it("is admitted one payment at a time under concurrency", async () => {
    const ledger = await join("one");
    const wishes = [by(payer), by(payer), by(other), by(payer)];
    const results = await Promise.all(wishes.map((wished) => reservePayment(ledger, wished)));
    expect(results.map(({ outcome }) => outcome)).toEqual([
      "reserved",
      "code_limited",
      "reserved",
      "code_limited",
    ]);
  });

  it("shares one gas budget over all processes, which releases and confirmations refill", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const id = await queue(one, by(payer, { order, gasAtRisk: 500_000n }));
    const held = await reservePayment(two, by(other, { gasAtRisk: 500_000n }));
    if (held.outcome !== "reserved") throw new Error(held.outcome);
    const empty = { outcome: "code_limited", why: "no_gas_left", retryAfterMs: 2_000 };
    expect(await reservePayment(two, by(third))).toEqual(empty);
    expect(await reservePayment(one, by(third))).toEqual(empty);
    await releasePayment(two, { token: held.token, payer: other, countsAgainstPayer: false });
    expect(await reservePayment(one, by(third))).toMatchObject({ outcome: "reserved" });
    expect(await reservePayment(two, by(fourth))).toEqual(empty);
    await carry(one, id, 0);
    await recordOutcomes(one, [{ confirmed: { ids: [id], inclusion } }]);
    expect(await reservePayment(two, by(fourth))).toMatchObject({ outcome: "reserved" });
    // A confirmed payment vouches for the next: it takes nothing of the budget.
    expect(await reservePayment(two, by(payer, { gasAtRisk: 900_000n }))).toMatchObject({
      outcome: "reserved",
    });
  });

  it("gets its share of the budget back a minute after a failed transaction", async () => {
    const ledger = await join("one");
    const id = await queue(ledger, by(payer, { order, gasAtRisk: 800_000n }));
    await carry(ledger, id, 0);
    const reason = "invalid_exact_evm_transaction_failed";
    await recordOutcomes(ledger, [{ failed: [{ ids: [id], reason, inclusion }] }]);
    const empty = await reservePayment(ledger, by(other));
    if (empty.outcome !== "code_limited") throw new Error(empty.outcome);
    expect(empty.retryAfterMs).toBeGreaterThan(1_000);
    expect(empty.retryAfterMs).toBeLessThanOrEqual(60_000);
    await age("code_gas", "spent_at", 60_000);
    expect(await reservePayment(ledger, by(other))).toMatchObject({ outcome: "reserved" });
  });

  it("spends no gas of the budget when another sender executes its payment first", async () => {
    const ledger = await join("one");
    const id = await queue(ledger, by(payer, { order, gasAtRisk: 900_000n }));
    await carry(ledger, id, 0);
    const confirmed = { ids: [id], inclusion: inAnother, gasShare: 50_000n, billedGas: 0n };
    await recordOutcomes(ledger, [{ confirmed }]);
    expect(await reservePayment(ledger, by(other, { gasAtRisk: 1_000_000n }))).toMatchObject({
      outcome: "reserved",
    });
  });

  it("risks all its gas again when the block of its failure's explanation has left the chain", async () => {
    const ledger = await join("one");
    const id = await queue(ledger, by(payer, { order, gasAtRisk: 900_000n }));
    await carry(ledger, id, 0);
    const gas = { gasShare: 50_000n, billedGas: 50_000n };
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion: inAnother, ...gas } }]);
    const token = await hold(ledger, other);
    await releasePayment(ledger, { token, payer: other, countsAgainstPayer: false });
    await undoBlocks(ledger, {
      network,
      blocks: [{ number: inclusion.blockNumber, hash: inclusion.blockHash }],
    });
    expect(await stateOf(ledger, id)).toBe("submitted");
    expect(await reservePayment(ledger, by(third))).toMatchObject({ why: "no_gas_left" });
  });

  it("has one place for a payment that is confirmed again after a reorganisation", async () => {
    const ledger = await join("one");
    const id = await queue(ledger, by(payer, { order }));
    await carry(ledger, id, 0);
    const confirmed = { ids: [id], inclusion, gasShare: 50_000n };
    await recordOutcomes(ledger, [{ confirmed }]);
    await undoBlocks(ledger, {
      network,
      blocks: [{ number: inclusion.blockNumber, hash: inclusion.blockHash }],
    });
    await recordOutcomes(ledger, [{ confirmed }]);
    expect(await stateOf(ledger, id)).toBe("confirmed");
    await hold(ledger, payer);
    await hold(ledger, payer);
    expect(await reservePayment(ledger, by(payer))).toMatchObject({ why: "too_many_open" });
  });

  it("is refused by every process for a time after burning gas, and then starts without a record", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const paid = await queue(one, by(payer, { order }));
    await carry(one, paid, 0);
    await recordOutcomes(one, [{ confirmed: { ids: [paid], inclusion } }]);
    const id = await queue(one, by(payer, { order }));
    await burn(one, id, 1);
    expect(await stateOf(two, id)).toBe("failed");
    expect(await findRefusal(two, payer)).toBeGreaterThan(50_000);
    expect(await reservePayment(two, by(payer))).toMatchObject({ outcome: "burnt_gas" });
    await age("code_payers", "refused_until", 60_001);
    expect(await findRefusal(two, payer)).toBeUndefined();
    expect(await reservePayment(two, by(payer))).toMatchObject({ outcome: "reserved" });
    expect(await reservePayment(two, by(payer))).toMatchObject({ outcome: "code_limited" });
  });

  it("keeps a clean record after a transaction that failed through no fault of its own", async () => {
    const ledger = await join("one");
    const paid = await queue(ledger, by(payer, { order }));
    await carry(ledger, paid, 0);
    await recordOutcomes(ledger, [{ confirmed: { ids: [paid], inclusion } }]);
    await age("payments", "confirmed_at", 10);
    const failing = by(payer, { order, gasAtRisk: 900_000n });
    const id = await queue(ledger, failing);
    await carry(ledger, id, 1);
    const reason = "invalid_exact_evm_transaction_failed";
    const burn = { payer, gas: 90_000n, isBlamed: false };
    await recordOutcomes(ledger, [{ failed: [{ ids: [id], reason, inclusion, burn }] }]);
    expect(await findRefusal(ledger, payer)).toBeUndefined();
    const empty = { outcome: "code_limited", why: "no_gas_left" };
    expect(await reservePayment(ledger, by(payer, { gasAtRisk: 1_100_000n }))).toMatchObject(empty);
    expect(await reservePayment(ledger, by(payer))).toMatchObject({ outcome: "reserved" });
  });

  it("holds its share of the budget for a failed payment until the minute is over", async () => {
    const ledger = await join("one");
    const failing = by(payer, { order });
    const id = await queue(ledger, failing);
    await carry(ledger, id, 0);
    const reason = "invalid_exact_evm_transaction_failed";
    await recordOutcomes(ledger, [{ failed: [{ ids: [id], reason, inclusion }] }]);
    const again = { ...by(payer), id: failing.id, fingerprint: failing.fingerprint };
    expect(await reservePayment(ledger, again)).toMatchObject({
      outcome: "code_limited",
      why: "no_gas_left",
    });
    expect(await reservePayment(ledger, by(other))).toMatchObject({ outcome: "reserved" });
    await age("code_gas", "spent_at", 60_000);
    await age("payments", "submitted_at", 60_000);
    expect(await reservePayment(ledger, again)).toMatchObject({ outcome: "reserved" });
  });

  it.each([
    ["at once", false],
    ["after it had failed", true],
  ])(
    "gains nothing, and pays its burnt gas for the minute, when another sender executes what our transaction tried in vain, %s",
    async (_, hasFailed) => {
      const ledger = await join("one");
      const id = await queue(ledger, by(payer, { order, gasAtRisk: 900_000n }));
      await carry(ledger, id, 0);
      const settled = { id: transaction(0, [id]).id, inclusion, gasUsed: 320_000n };
      const gas = { gasShare: 320_000n, billedGas: 320_000n };
      const reason = "invalid_exact_evm_transaction_failed";
      const failed = [{ ids: [id], reason, inclusion, ...gas }] as const;
      if (hasFailed) await recordOutcomes(ledger, [{ failed: [...failed] }], settled);
      const confirmed = { ids: [id], inclusion: inAnother, ...(hasFailed ? {} : gas) };
      await recordOutcomes(ledger, [{ confirmed }], hasFailed ? undefined : settled);
      expect(await stateOf(ledger, id)).toBe("confirmed");
      expect(await findRefusal(ledger, payer)).toBeUndefined();
      expect(await reservePayment(ledger, by(other, { gasAtRisk: 690_000n }))).toMatchObject({
        why: "no_gas_left",
      });
      const held = await hold(ledger, other, { gasAtRisk: 670_000n });
      await releasePayment(ledger, { token: held, payer: other, countsAgainstPayer: false });
      await age("code_gas", "spent_at", 60_000);
      await age("payments", "submitted_at", 60_000);
      expect(await reservePayment(ledger, by(other, { gasAtRisk: 700_000n }))).toMatchObject({
        outcome: "reserved",
      });
      expect(await reservePayment(ledger, by(payer))).toMatchObject({ outcome: "reserved" });
      expect(await reservePayment(ledger, by(payer))).toMatchObject({ why: "too_many_open" });
    },
  );

  it("gets its place back when another sender executes a payment that was brought again and is still queued", async () => {
    const ledger = await join("one");
    const wished = by(payer, { order });
    const id = await queue(ledger, wished);
    await carry(ledger, id, 0);
    const reason = "invalid_exact_evm_transaction_failed";
    const failed = [{ ids: [id], reason, inclusion, gasShare: 50_000n }] as const;
    await recordOutcomes(ledger, [{ failed: [...failed] }]);
    await age("code_gas", "spent_at", 60_000);
    await age("payments", "submitted_at", 60_000);
    expect(await queue(ledger, wished)).toBe(id);
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion: inAnother } }]);
    expect(await reservePayment(ledger, by(payer))).toMatchObject({ outcome: "reserved" });
  });

  it("keeps what it has paid by our transactions when another sender executes a payment first", async () => {
    const ledger = await join("one");
    for (const nonce of [0, 1]) {
      const id = await queue(ledger, by(payer, { order }));
      await carry(ledger, id, nonce);
      const ours = { ...inclusion, transactionHash: hash(1_000 + nonce) };
      const settled = { id: transaction(nonce, [id]).id, inclusion: ours, gasUsed: 50_000n };
      const place = nonce === 0 ? ours : inAnother;
      const isOthers = place === inAnother;
      const gas = { gasShare: 50_000n, ...(isOthers ? { billedGas: 0n } : {}) };
      const confirmed = { ids: [id], inclusion: place, ...gas };
      await recordOutcomes(ledger, [{ confirmed }], settled);
    }
    const held = [];
    for (const _ of [1, 2, 3]) held.push(await reservePayment(ledger, by(payer)));
    expect(held).toMatchObject([
      { outcome: "reserved" },
      { outcome: "reserved" },
      { why: "too_many_open" },
    ]);
  });

  it("is refused for a burn of our transaction though another sender's executed the payment behind it", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const id = await queue(one, by(payer, { order }));
    await carry(one, id, 0);
    const burn = { payer, gas: 320_000n, isBlamed: true };
    const confirmed = { ids: [id], inclusion: inAnother, burn };
    await recordOutcomes(one, [{ confirmed }]);
    const left = await findRefusal(one, payer);
    expect(left).toBeGreaterThan(50_000);
    expect(await reservePayment(two, by(payer))).toMatchObject({ outcome: "burnt_gas" });
    // Another process reads the same block.
    await age("code_payers", "refused_until", 30_000);
    await recordOutcomes(two, [{ confirmed }]);
    expect(await findRefusal(two, payer)).toBeLessThan(left ?? 0);
  });

  it("has its record on the network where it paid", async () => {
    const ledger = await join("one");
    const id = await queue(ledger, by(payer, { order }));
    await carry(ledger, id, 0);
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]);
    const elsewhere = (gas: bigint) => {
      const wished = by(payer, { gasAtRisk: gas });
      return { ...wished, id: { ...wished.id, network: "eip155:988" as const } };
    };
    expect(await reservePayment(ledger, elsewhere(1_100_000n))).toMatchObject({
      outcome: "code_limited",
      why: "no_gas_left",
    });
    expect(await reservePayment(ledger, elsewhere(300_000n))).toMatchObject({
      outcome: "reserved",
    });
    expect(await reservePayment(ledger, elsewhere(300_000n))).toMatchObject({
      why: "too_many_open",
    });
  });

  it("risks at most four times the budget with payments vouched for by a record, over all processes", async () => {
    const [one, two] = [await join("one"), await join("two")];
    await pay(one, payer, 0);
    await pay(one, other, 1);
    await pay(one, third, 2);
    await age("payments", "confirmed_at", 10);
    const id = await queue(one, by(payer, { order, gasAtRisk: 2_000_000n }));
    const settled = await queue(two, by(other, { order, gasAtRisk: 2_000_000n }));
    const empty = { outcome: "code_limited", why: "no_gas_left", retryAfterMs: 2_000 };
    expect(await reservePayment(two, by(third))).toEqual(empty);
    expect(await reservePayment(one, by(third, { order }))).toEqual(empty);
    // Those without a record have a budget of their own, and plain keys need none.
    expect(await reservePayment(two, by(fourth, { gasAtRisk: 1_000_000n }))).toMatchObject({
      outcome: "reserved",
    });
    const plain = { ...by(third), gasAtRisk: undefined };
    expect(await reservePayment(two, plain)).toMatchObject({ outcome: "reserved" });
    await carry(one, id, 3);
    const reason = "invalid_exact_evm_transaction_failed";
    const burn = { payer, gas: 2_000_000n, isBlamed: true };
    await recordOutcomes(one, [{ failed: [{ ids: [id], reason, inclusion, burn }] }]);
    const large = by(third, { gasAtRisk: 2_100_000n });
    // Burnt gas counts for a minute, that of confirmed payments no more.
    await carry(two, settled, 4);
    await recordOutcomes(two, [{ confirmed: { ids: [settled], inclusion } }]);
    expect(await reservePayment(two, large)).toMatchObject({ why: "no_gas_left" });
    await age("code_gas", "spent_at", 60_000);
    expect(await reservePayment(two, large)).toMatchObject({ outcome: "reserved" });
  });

  it("waits a minute after a reservation that it gave up, without delaying others", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const token = await hold(one, payer, { gasAtRisk: 900_000n });
    expect(await reservePayment(two, by(other))).toMatchObject({ why: "no_gas_left" });
    await releasePayment(one, { token, payer, countsAgainstPayer: false });
    const waits = { outcome: "code_limited", why: "given_up" };
    const waiting = await reservePayment(two, by(payer));
    if (waiting.outcome !== "code_limited") throw new Error(waiting.outcome);
    expect(waiting).toMatchObject(waits);
    expect(waiting.retryAfterMs).toBeGreaterThan(2_000);
    expect(waiting.retryAfterMs).toBeLessThanOrEqual(60_000);
    expect(await reservePayment(one, by(payer, { order }))).toMatchObject(waits);
    expect(await reservePayment(one, by(other, { gasAtRisk: 900_000n }))).toMatchObject({
      outcome: "reserved",
    });
    await age("code_gas", "spent_at", 60_000);
    expect(await reservePayment(two, by(payer, { gasAtRisk: 100_000n }))).toMatchObject({
      outcome: "reserved",
    });
  });

  it("waits with the same payment too, also after a crash of its process", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const held = by(payer);
    expect(await reservePayment(one, held)).toMatchObject({ outcome: "reserved" });
    await silence("one");
    await releaseAbandoned(two);
    expect(await reservePayment(two, held)).toMatchObject({ why: "given_up" });
    await age("code_gas", "spent_at", 60_000);
    expect(await reservePayment(two, held)).toMatchObject({ outcome: "reserved" });
  });

  it("risks one payment's gas once when it is taken over from a dead process", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const held = by(payer, { gasAtRisk: 600_000n });
    expect(await reservePayment(one, held)).toMatchObject({ outcome: "reserved" });
    await silence("one");
    expect(await reservePayment(two, held)).toMatchObject({ outcome: "reserved" });
    expect(await reservePayment(two, by(other, { gasAtRisk: 500_000n }))).toMatchObject({
      why: "no_gas_left",
    });
    expect(await reservePayment(two, by(other, { gasAtRisk: 400_000n }))).toMatchObject({
      outcome: "reserved",
    });
  });

  it("may also give up one payment per confirmed payment", async () => {
    const ledger = await join("one");
    await pay(ledger, payer, 0);
    for (const _ of ["one", "two"]) {
      const token = await hold(ledger, payer);
      await releasePayment(ledger, { token, payer, countsAgainstPayer: false });
    }
    expect(await reservePayment(ledger, by(payer))).toMatchObject({ why: "given_up" });
    expect(await reservePayment(ledger, by(other))).toMatchObject({ outcome: "reserved" });
  });

  it("cannot hold a place for free by giving up one payment repeatedly, whatever its record", async () => {
    const ledger = await join("one");
    await pay(ledger, payer, 0);
    const held = by(payer);
    const first = await reservePayment(ledger, held);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    await releasePayment(ledger, { token: first.token, payer, countsAgainstPayer: false });
    expect(await reservePayment(ledger, held)).toMatchObject({ why: "given_up" });
    expect(await reservePayment(ledger, by(payer))).toMatchObject({ outcome: "reserved" });
  });

  it("spends no budget with a payment that failed once and is given up when presented again", async () => {
    const ledger = await join("one");
    const failing = by(payer, { order, gasAtRisk: 900_000n });
    const id = await queue(ledger, failing);
    await carry(ledger, id, 0);
    const reason = "invalid_exact_evm_transaction_failed";
    await recordOutcomes(ledger, [{ failed: [{ ids: [id], reason, inclusion }] }]);
    await age("code_gas", "spent_at", 60_000);
    const again = { ...failing, order: undefined };
    const held = await reservePayment(ledger, again);
    if (held.outcome !== "reserved") throw new Error(held.outcome);
    await releasePayment(ledger, { token: held.token, payer, countsAgainstPayer: false });
    expect(await reservePayment(ledger, by(other))).toMatchObject({ outcome: "reserved" });
  });

  it("is counted as burning once when two processes read the same block", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const id = await queue(one, by(payer, { order }));
    await burn(one, id, 0);
    const left = await findRefusal(one, payer);
    await age("code_payers", "refused_until", 30_000);
    const reason = "invalid_exact_evm_transaction_failed";
    await recordOutcomes(two, [
      {
        failed: [{ ids: [id], reason, inclusion, burn: { payer, gas: 320_000n, isBlamed: true } }],
      },
    ]);
    expect(await findRefusal(two, payer)).toBeLessThan(left ?? 0);
  });
});
