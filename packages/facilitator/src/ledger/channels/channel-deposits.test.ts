import { sql } from "kysely";
import { beforeEach, describe, expect, it } from "vitest";
import { by } from "../../testing/code-payers.ts";
import {
  account,
  depositPlace,
  newDeposit,
  readDepositRow as read,
  requeue,
  word,
} from "../../testing/ledger-deposits.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { ledgerLater } from "../../testing/ledger-later.ts";
import { wish } from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { releasePayment } from "../payments/release-payment.ts";
import { reservePayment } from "../payments/reserve-payments.ts";
import {
  findOpenDeposits,
  type NewDeposit,
  type OpenDeposit,
  readDeposit,
} from "./channel-deposits.ts";
import { findSteps } from "./channel-history.ts";
import {
  endDeposit,
  failDeposit,
  forgetDeposits,
  recordDeposited,
  recordDepositSent,
} from "./move-deposit.ts";
import { queueDeposit } from "./queue-deposit.ts";

const reason = "invalid_batch_settlement_evm_deposit_transaction_failed";

describe.each(engines)("deposits in the ledger, on %s", (engine) => {
  const shared = ledgerForEachTest(engine);
  let first: LedgerContext;
  let second: LedgerContext;

  beforeEach(async () => {
    first = await shared.join("first");
    second = await shared.join("second");
  });

  const open = (isExecuted: boolean) =>
    findOpenDeposits(first, { ...depositPlace, isExecuted, limit: 9 });

  /** As its transaction is stored, and in vain. */
  async function carry(deposit: NewDeposit): Promise<void> {
    const row = await read(first, deposit);
    await first.write((transaction) =>
      recordDepositSent(transaction, { deposit: row, transactionId: word(77) }),
    );
  }

  it("are queued once by all processes", async () => {
    const deposit = newDeposit();
    const outcomes = await Promise.all([
      queueDeposit(first, deposit),
      queueDeposit(second, deposit),
    ]);
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(["known", "queued"]);
    expect(await open(false)).toMatchObject([{ state: "queued", data: "0xabcd", attempts: 0 }]);
  });

  it("deposits of one channel are under way one at a time", async () => {
    const { channelId, ...deposit } = newDeposit();
    expect(await queueDeposit(first, { ...deposit, channelId })).toEqual({ outcome: "queued" });
    const other = newDeposit({ channelId });
    expect(await queueDeposit(second, other)).toEqual({ outcome: "busy" });
    await recordDeposited(first, await read(first, { ...deposit, channelId }), {
      hash: word(1),
      blockNumber: 8,
    });
    expect(await queueDeposit(second, other)).toEqual({ outcome: "queued" });
  });

  it("are found page by page, each once, also those of one moment", async () => {
    const nonce = word(5);
    const other = newDeposit({ nonce, payer: account(9) });
    const deposits = [newDeposit({ nonce }), other, newDeposit()];
    for (const deposit of deposits) await queueDeposit(first, deposit);
    await first.write((transaction) =>
      transaction.updateTable("channel_deposits").set({ created_at: 1 }).execute(),
    );
    const found: string[] = [];
    for (let after: OpenDeposit | undefined; ; ) {
      const page = { ...depositPlace, isExecuted: false, limit: 1, after };
      [after] = await findOpenDeposits(first, page);
      if (after === undefined) break;
      found.push(after.channelId);
    }
    expect(found.sort()).toEqual(deposits.map(({ channelId }) => channelId).sort());
  });

  it("keep numbers of any size", async () => {
    const [amount, validBefore] = [2n ** 128n - 1n, 2n ** 256n - 1n];
    const deposit = { ...newDeposit({ amount, validBefore }), balance: 2n ** 256n - 1n };
    expect(await queueDeposit(first, deposit)).toEqual({ outcome: "queued" });
    expect(await open(false)).toMatchObject([{ amount, validBefore }]);
  });

  it("fit the payer's balance together", async () => {
    const large = { amount: 600n };
    expect(await queueDeposit(first, newDeposit(large))).toEqual({ outcome: "queued" });
    expect(await queueDeposit(first, newDeposit(large))).toEqual({ outcome: "busy" });
    const stranger = newDeposit({ ...large, payer: account(9) });
    expect(await queueDeposit(first, stranger)).toEqual({ outcome: "queued" });
  });

  it("are limited by the signer, and not by the payer in whose name they are", async () => {
    const payers = [3, 4, 6].map(account);
    for (const payer of payers) await queueDeposit(first, newDeposit({ payer }));
    const limited = await queueDeposit(first, newDeposit());
    expect(limited).toMatchObject({ outcome: "limited" });
    const bySigner = newDeposit({ signer: account(8), payer: account(3) });
    expect(await queueDeposit(first, bySigner)).toEqual({ outcome: "queued" });
    const tomorrow = ledgerLater(first, 86_400_001);
    expect(await queueDeposit(tomorrow, newDeposit())).toEqual({ outcome: "queued" });
    // Their clock was far ahead.
    const yearBefore = ledgerLater(first, -365 * 86_400_000);
    expect(await queueDeposit(yearBefore, newDeposit())).toEqual({ outcome: "queued" });
  });

  describe("deposits under way of one payer", () => {
    it("take places by each transaction that carries them, also of an attempt in vain before", async () => {
      const deposit = newDeposit();
      await queueDeposit(first, deposit);
      await carry(deposit);
      await failDeposit(first, await read(first, deposit), { reason });
      expect(await queueDeposit(first, deposit)).toEqual({ outcome: "queued" });
      expect(await queueDeposit(first, newDeposit())).toEqual({ outcome: "busy" });
    });

    it("keep it from further ones of their own network alone", async () => {
      for (let count = 1; count <= 2; count += 1) await queueDeposit(first, newDeposit());
      expect(await queueDeposit(first, newDeposit())).toEqual({ outcome: "busy" });
      const other = newDeposit({ network: "eip155:9746" });
      expect(await queueDeposit(first, other)).toEqual({ outcome: "queued" });
    });
  });

  describe("deposits of payers with code", () => {
    const withCode = (number: number, parts: Partial<NewDeposit> = {}) =>
      newDeposit({
        payerHasCode: true,
        payer: account(number),
        signer: account(number),
        gas: 400_000n,
        ...parts,
      });
    const empty = { outcome: "code_limited", why: "no_gas_left" };

    it("share one gas budget over all processes, until they are executed", async () => {
      const deposits = [withCode(21), withCode(22)];
      for (const each of deposits) {
        expect(await queueDeposit(first, each)).toEqual({ outcome: "queued" });
      }
      const third = withCode(23);
      expect(await queueDeposit(first, third)).toMatchObject(empty);
      expect(await queueDeposit(second, third)).toMatchObject(empty);
      // A plain key fails at its own cost.
      expect(await queueDeposit(first, newDeposit())).toEqual({ outcome: "queued" });
      const [done] = deposits;
      if (done === undefined) throw new Error("No deposit");
      await recordDeposited(second, await read(second, done), { hash: word(1), blockNumber: 8 });
      expect(await queueDeposit(first, third)).toEqual({ outcome: "queued" });
      expect(await queueDeposit(second, withCode(24))).toMatchObject(empty);
    });

    it("share that budget with exact payments, in both directions", async () => {
      expect(await queueDeposit(first, withCode(21, { gas: 800_000n }))).toEqual({
        outcome: "queued",
      });
      const exact = by("0x00000000000000000000000000000000000000ee");
      expect(await reservePayment(second, exact)).toMatchObject(empty);
      const small = { ...exact, gasAtRisk: 200_000n };
      const held = await reservePayment(second, small);
      if (held.outcome !== "reserved") throw new Error(held.outcome);
      const next = withCode(22, { gas: 100_000n });
      expect(await queueDeposit(first, next)).toMatchObject(empty);
      const release = { token: held.token, payer: exact.id.payer, countsAgainstPayer: false };
      await releasePayment(second, release);
      expect(await queueDeposit(first, next)).toEqual({ outcome: "queued" });
    });

    it("are one at a time for a payer without a record, together with its exact payments", async () => {
      expect(await queueDeposit(first, withCode(21, { gas: 100_000n }))).toEqual({
        outcome: "queued",
      });
      const other = withCode(21, { gas: 100_000n });
      expect(await queueDeposit(second, other)).toMatchObject({ why: "too_many_open" });
      const exact = { ...by("0x00000000000000000000000000000000000000ee"), gasAtRisk: 100_000n };
      const own = { ...exact, id: { ...exact.id, payer: account(21) } };
      expect(await reservePayment(second, own)).toMatchObject({ why: "too_many_open" });
    });

    it("deposits of payers with code that a transaction carried in vain keep their gas for a minute", async () => {
      const deposit = withCode(21, { gas: 800_000n });
      await queueDeposit(first, deposit);
      await carry(deposit);
      await failDeposit(first, await read(first, deposit), { reason });
      const other = withCode(22);
      // As after a clock that was set back by an hour.
      await shared.age("channel_deposits", "spent_at", -3_600_000);
      expect(await queueDeposit(second, other)).toMatchObject(empty);
      await shared.age("channel_deposits", "spent_at", 60_000);
      expect(await queueDeposit(second, other)).toEqual({ outcome: "queued" });
    });

    it("deposits of payers with code that no transaction carried give their gas back", async () => {
      const deposit = withCode(21, { gas: 800_000n });
      await queueDeposit(first, deposit);
      await failDeposit(first, await read(first, deposit), { reason });
      expect(await queueDeposit(second, withCode(22))).toEqual({ outcome: "queued" });
    });
  });

  it("deposits of payers with code and exact payments fit the payer's balance together, in both directions", async () => {
    const exact = wish({ value: 600n, balance: { amount: 1_000n, blockNumber: 8n } });
    const { network, asset: token, payer } = exact.id;
    const own = { network, token, payer, amount: 600n } as const;
    const deposit = newDeposit(own);
    expect(await queueDeposit(first, deposit)).toEqual({ outcome: "queued" });
    expect(await reservePayment(second, exact)).toMatchObject({ outcome: "over_committed" });
    // A balance that was read after its block lacks its amount already.
    await recordDeposited(first, await read(first, deposit), { hash: word(1), blockNumber: 8 });
    const before = { ...exact, balance: { amount: 1_000n, blockNumber: 7n } };
    expect(await reservePayment(second, before)).toMatchObject({ outcome: "over_committed" });
    expect(await reservePayment(second, exact)).toMatchObject({ outcome: "reserved" });
    expect(await queueDeposit(first, newDeposit(own))).toEqual({ outcome: "busy" });
  });

  it("deposits of payers with code and exact payments never exceed the payer's balance, at two processes at once", async () => {
    const exact = () => wish({ value: 600n, balance: { amount: 1_000n, blockNumber: 8n } });
    for (let round = 0; round < 10; round += 1) {
      const payer = account(1_000 + round);
      const { id, ...wished } = exact();
      const own = { network: id.network, token: id.asset, payer, amount: 600n } as const;
      const outcomes = await Promise.all([
        reservePayment(first, { ...wished, id: { ...id, payer } }),
        queueDeposit(second, newDeposit({ ...own, signer: payer })),
      ]);
      const taken = outcomes.filter(({ outcome }) => ["reserved", "queued"].includes(outcome));
      expect(taken).toHaveLength(1);
    }
  });

  describe("deposits of a caller", () => {
    const gasOf = (caller: string) =>
      shared.read(sql`select gas, by_buyer from caller_gas where caller = ${caller}`);
    const taken = { gas: expect.anything(), by_buyer: expect.anything() };

    it("take its gas each time that they are queued", async () => {
      const deposit = newDeposit({ caller: "shop" });
      expect(await queueDeposit(first, deposit)).toEqual({ outcome: "queued" });
      expect(await queueDeposit(second, deposit)).toEqual({ outcome: "known" });
      expect(await gasOf("shop")).toEqual([taken]);
      expect(await requeue(first, await read(first, deposit))).toEqual({ outcome: "queued" });
      expect(await gasOf("shop")).toEqual([taken, taken]);
    });

    it("are refused beyond its share, and take nothing where they are not queued", async () => {
      const large = { caller: "shop", gas: 400_000n };
      expect(await queueDeposit(first, newDeposit(large))).toEqual({ outcome: "queued" });
      expect(await queueDeposit(first, newDeposit(large))).toMatchObject({
        outcome: "caller_limited",
      });
      const others = { ...large, caller: "kiosk" };
      expect(await queueDeposit(first, newDeposit({ ...others, amount: 2_000n }))).toEqual({
        outcome: "busy",
      });
      expect(await gasOf("kiosk")).toEqual([]);
      expect(await queueDeposit(first, newDeposit(others))).toEqual({ outcome: "queued" });
      // The clock that wrote it was far ahead.
      const yearBefore = ledgerLater(first, -365 * 86_400_000);
      const again = newDeposit({ ...large, payer: account(9) });
      expect(await queueDeposit(yearBefore, again)).toEqual({ outcome: "queued" });
    });
  });

  it("deposits of a caller that failed before a transaction carried them are queued again", async () => {
    const deposit = newDeposit();
    for (let count = 1; count <= 3; count += 1) {
      expect(await queueDeposit(first, deposit)).toEqual({ outcome: "queued" });
      expect(await failDeposit(first, await read(first, deposit), { reason })).toBe(true);
      expect(await read(second, deposit)).toMatchObject({ state: "failed", data: undefined });
    }
  });

  it("are moved by a process that has read their present state alone", async () => {
    const deposit = newDeposit();
    await queueDeposit(first, deposit);
    const old = await read(first, deposit);
    await recordDeposited(second, old, { hash: word(3), blockNumber: 8 });
    expect(await failDeposit(first, old, { reason })).toBe(false);
    expect(await open(true)).toMatchObject([{ state: "done", hash: word(3) }]);
    await requeue(first, await read(first, deposit));
    expect(await open(false)).toMatchObject([{ state: "queued", hash: undefined }]);
  });

  it("are steps of their own channel, with their transaction or the reason of their end", async () => {
    const done = newDeposit({ amount: 300n });
    const failed = newDeposit({ channelId: done.channelId });
    for (const each of [done, newDeposit()]) await queueDeposit(first, each);
    const steps = () => findSteps(second, { ...done, config: done, limit: 9 });
    expect(await steps()).toMatchObject([{ kind: "deposit", state: "queued", amount: 300n }]);
    await recordDeposited(first, await read(first, done), { hash: word(3), blockNumber: 8 });
    await queueDeposit(ledgerLater(first, 1), failed);
    await failDeposit(first, await read(first, failed), { reason });
    expect(await steps()).toMatchObject([
      { kind: "deposit", state: "failed", reason, hash: undefined },
      { kind: "deposit", state: "done", amount: 300n, hash: word(3), reason: undefined },
    ]);
  });

  it("leave the open ones when they are final, and the ledger when they are old", async () => {
    const deposit = newDeposit();
    await queueDeposit(first, deposit);
    await recordDeposited(first, await read(first, deposit), { hash: word(3), blockNumber: 8 });
    await endDeposit(first, await read(first, deposit));
    expect(await open(true)).toEqual([]);
    expect(await queueDeposit(first, deposit)).toEqual({ outcome: "known" });
    const { network } = depositPlace;
    await forgetDeposits(first, { network, before: first.now() - 1_000 });
    expect(await read(first, deposit)).toMatchObject({ state: "done", data: undefined });
    await forgetDeposits(first, { network, before: first.now() + 1_000 });
    expect(await readDeposit(first, deposit)).toBeUndefined();
  });
});
