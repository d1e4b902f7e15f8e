import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
  inclusion,
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
import { findRefusal } from "./admit-code.ts";
import { recordOutcomes } from "./record-outcomes.ts";
import { releasePayment } from "./release-payment.ts";
import { reservePayment } from "./reserve-payments.ts";

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

describe.each(engines)("payers with code, on %s", (engine) => {
  const { join, age, silence } = ledgerForEachTest(engine);

  it("have one payment under way, and one more for each that was confirmed", async () => {
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

  it("are limited one by one when they come together", async () => {
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

  it("share one gas budget over all processes, which what was released or confirmed gives back", async () => {
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
    // What is confirmed vouches for the next: it takes nothing of the budget.
    expect(await reservePayment(two, by(payer, { gasAtRisk: 900_000n }))).toMatchObject({
      outcome: "reserved",
    });
  });

  it("get back after a minute what a transaction took for nothing", async () => {
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

  it("are refused by every process for a time once they have burnt gas, and then begin anew", async () => {
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

  it("keep a clean record after a transaction that moved nothing through no fault of theirs", async () => {
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

  it("wait with a payment that a transaction carried for nothing, until it gives back what it took", async () => {
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

  it("have a record on the network alone where they paid", async () => {
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

  it("risk four times the budget at most with payments that a record vouches for, over all processes", async () => {
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
    // What was burnt counts for a minute; what is confirmed counts no more.
    await carry(two, settled, 4);
    await recordOutcomes(two, [{ confirmed: { ids: [settled], inclusion } }]);
    expect(await reservePayment(two, large)).toMatchObject({ why: "no_gas_left" });
    await age("code_gas", "spent_at", 60_000);
    expect(await reservePayment(two, large)).toMatchObject({ outcome: "reserved" });
  });

  it("wait until a minute has passed since a reservation that they gave up, and others do not", async () => {
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

  it("wait with the same payment too, and after a crash of the process that held it", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const held = by(payer);
    expect(await reservePayment(one, held)).toMatchObject({ outcome: "reserved" });
    await silence("one");
    await releaseAbandoned(two);
    expect(await reservePayment(two, held)).toMatchObject({ why: "given_up" });
    await age("code_gas", "spent_at", 60_000);
    expect(await reservePayment(two, held)).toMatchObject({ outcome: "reserved" });
  });

  it("put the gas of one payment at risk once, when it is taken over from a dead process", async () => {
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

  it("have a place for each confirmed payment that is given up as well", async () => {
    const ledger = await join("one");
    await pay(ledger, payer, 0);
    for (const _ of ["one", "two"]) {
      const token = await hold(ledger, payer);
      await releasePayment(ledger, { token, payer, countsAgainstPayer: false });
    }
    expect(await reservePayment(ledger, by(payer))).toMatchObject({ why: "given_up" });
    expect(await reservePayment(ledger, by(other))).toMatchObject({ outcome: "reserved" });
  });

  it("cannot hold a place for nothing by giving up one payment again and again, whatever their record", async () => {
    const ledger = await join("one");
    await pay(ledger, payer, 0);
    const held = by(payer);
    const first = await reservePayment(ledger, held);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    await releasePayment(ledger, { token: first.token, payer, countsAgainstPayer: false });
    expect(await reservePayment(ledger, held)).toMatchObject({ why: "given_up" });
    expect(await reservePayment(ledger, by(payer))).toMatchObject({ outcome: "reserved" });
  });

  it("take nothing of the budget with a payment that failed once, and is given up when brought again", async () => {
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

  it("are not counted as burning twice by two processes that read the same block", async () => {
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
