import { describe, expect, it } from "vitest";
import {
  by,
  carry,
  fourth,
  hold,
  inAnother,
  other,
  type Payer,
  third,
} from "../../testing/code-payers.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { inclusion, order, payer, queue } from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { releaseAbandoned } from "../maintenance/processes.ts";
import { enqueuePayment } from "./enqueue-payments.ts";
import { recordOutcomes } from "./record-outcomes.ts";
import { releasePayment } from "./release-payment.ts";
import { reservePayment } from "./reserve-payments.ts";

async function pay(ledger: LedgerContext, from: Payer, nonce: number): Promise<void> {
  const id = await queue(ledger, by(from, { order }));
  await carry(ledger, id, nonce);
  await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]);
}

describe.each(engines)("a payer with code, on %s", (engine) => {
  const { join, age, silence, wait } = ledgerForEachTest(engine);

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

  it.each([
    ["an hour ahead of", 3_600_000],
    ["an hour behind", -3_600_000],
  ])(
    "counts burnt gas for a minute from its transaction, where the clock of the process is %s the database's",
    async (_, aheadMs) => {
      const ledger = await join("one");
      wait(Date.now() + aheadMs - ledger.now());
      const failing = by(payer, { gasAtRisk: 800_000n });
      const token = await hold(ledger, payer, failing);
      await age("code_gas", "spent_at", 60_000);
      const queued = await enqueuePayment(ledger, { token, payer, order });
      if (queued === undefined) throw new Error("The reservation was lost");
      await carry(ledger, queued.id, 0);
      const reason = "invalid_exact_evm_transaction_failed";
      await recordOutcomes(ledger, [{ failed: [{ ids: [queued.id], reason, inclusion }] }]);
      const empty = await reservePayment(ledger, by(other));
      if (empty.outcome !== "code_limited") throw new Error(empty.outcome);
      expect(empty.retryAfterMs).toBeGreaterThan(1_000);
      expect(empty.retryAfterMs).toBeLessThanOrEqual(60_000);
      await age("code_gas", "spent_at", 60_000);
      expect(await reservePayment(ledger, by(other))).toMatchObject({ outcome: "reserved" });
    },
  );

  it("counts burnt gas for a minute and no longer, where the database's clock is set back by an hour", async () => {
    const ledger = await join("one");
    const id = await queue(ledger, by(payer, { order, gasAtRisk: 800_000n }));
    await carry(ledger, id, 0);
    const reason = "invalid_exact_evm_transaction_failed";
    await recordOutcomes(ledger, [{ failed: [{ ids: [id], reason, inclusion }] }]);
    await age("code_gas", "spent_at", -3_600_000);
    expect(await reservePayment(ledger, by(other))).toMatchObject({ why: "no_gas_left" });
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
    expect(await reservePayment(ledger, again)).toMatchObject({ outcome: "reserved" });
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
});
