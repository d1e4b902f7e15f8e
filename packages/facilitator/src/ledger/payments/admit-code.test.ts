import { describe, expect, it } from "vitest";
import { burn, by, carry, hold, inAnother, other, third } from "../../testing/code-payers.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
  hash,
  inclusion,
  network,
  order,
  payer,
  queue,
  stateOf,
  transaction,
} from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { undoBlocks } from "../transactions/undo-blocks.ts";
import { findRefusal } from "./admit-code.ts";
import { recordOutcomes } from "./record-outcomes.ts";
import { releasePayment } from "./release-payment.ts";
import { reservePayment } from "./reserve-payments.ts";

describe.each(engines)("a payer with code, on %s", (engine) => {
  const { join, age } = ledgerForEachTest(engine);

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
