import type { Hex } from "@coinslot/protocol";
import { numberToHex } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { ledgerLater } from "../../testing/ledger-later.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { findOpenDeposits, type NewDeposit, readDeposit } from "./channel-deposits.ts";
import { findSteps } from "./channel-history.ts";
import {
  endDeposit,
  failDeposit,
  forgetDeposits,
  recordDeposited,
  requeueDeposit,
} from "./move-deposit.ts";
import { queueDeposit } from "./queue-deposit.ts";

const word = (value: number): Hex => numberToHex(value, { size: 32 });
const account = (value: number): Hex => numberToHex(value, { size: 20 });
const limits = { perSigner: 3, failedPerPayer: 2, codePerHour: 2 };
const place = { network: "eip155:9745", contract: account(0x4020) } as const;
const reason = "invalid_batch_settlement_evm_deposit_transaction_failed";
let names = 0;

function newDeposit(parts: Partial<NewDeposit> = {}) {
  names += 1;
  const deposit: NewDeposit = {
    ...place,
    channelId: word(names),
    token: account(5),
    payer: account(1),
    nonce: word(names),
    signer: account(2),
    amount: 100n,
    validBefore: 4_000_000_000n,
    payerHasCode: false,
    data: "0xabcd",
    sinceNumber: 7,
    ...parts,
  };
  return { ...deposit, balance: 1_000n, limits };
}

describe.each(engines)("deposits in the ledger, on %s", (engine) => {
  const shared = ledgerForEachTest(engine);
  let first: LedgerContext;
  let second: LedgerContext;

  beforeEach(async () => {
    first = await shared.join("first");
    second = await shared.join("second");
  });

  async function read(ledger: LedgerContext, deposit: NewDeposit) {
    const row = await readDeposit(ledger, deposit);
    if (row === undefined) throw new Error("No row");
    return row;
  }

  const open = (isExecuted: boolean) => findOpenDeposits(first, { ...place, isExecuted, limit: 9 });

  it("are queued once by all processes", async () => {
    const deposit = newDeposit();
    const outcomes = await Promise.all([
      queueDeposit(first, deposit),
      queueDeposit(second, deposit),
    ]);
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(["known", "queued"]);
    expect(await open(false)).toMatchObject([{ state: "queued", data: "0xabcd", attempts: 0 }]);
  });

  it("of one channel are under way one at a time", async () => {
    const { channelId, ...deposit } = newDeposit();
    expect(await queueDeposit(first, { ...deposit, channelId })).toEqual({ outcome: "queued" });
    const other = newDeposit({ channelId });
    expect(await queueDeposit(second, other)).toEqual({ outcome: "busy" });
    await recordDeposited(first, await read(first, { ...deposit, channelId }), { hash: word(1) });
    expect(await queueDeposit(second, other)).toEqual({ outcome: "queued" });
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
    for (let count = 1; count <= 3; count += 1) await queueDeposit(first, newDeposit());
    const limited = await queueDeposit(first, newDeposit());
    expect(limited).toMatchObject({ outcome: "limited" });
    const bySigner = newDeposit({ signer: account(8) });
    expect(await queueDeposit(first, bySigner)).toEqual({ outcome: "queued" });
    const tomorrow = ledgerLater(first, 86_400_001);
    expect(await queueDeposit(tomorrow, newDeposit())).toEqual({ outcome: "queued" });
  });

  it("of payers with code are limited together, until they have been executed", async () => {
    const withCode = (number: number) =>
      newDeposit({ payerHasCode: true, payer: account(number), signer: account(number) });
    const deposits = [withCode(21), withCode(22)];
    for (const each of deposits) await queueDeposit(first, each);
    const third = withCode(23);
    expect(await queueDeposit(first, third)).toMatchObject({ outcome: "limited" });
    for (const each of deposits) {
      await recordDeposited(first, await read(first, each), { hash: word(1) });
    }
    expect(await queueDeposit(first, third)).toEqual({ outcome: "queued" });
  });

  it("that failed before a transaction carried them are queued again", async () => {
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
    await recordDeposited(second, old, { hash: word(3) });
    expect(await failDeposit(first, old, { reason })).toBe(false);
    expect(await open(true)).toMatchObject([{ state: "done", hash: word(3) }]);
    await requeueDeposit(first, await read(first, deposit));
    expect(await open(false)).toMatchObject([{ state: "queued", hash: undefined }]);
  });

  it("are steps of their own channel, with their transaction or the reason of their end", async () => {
    const done = newDeposit({ amount: 300n });
    const failed = newDeposit({ channelId: done.channelId });
    for (const each of [done, newDeposit()]) await queueDeposit(first, each);
    const steps = () => findSteps(second, { ...done, config: done, limit: 9 });
    expect(await steps()).toMatchObject([{ kind: "deposit", state: "queued", amount: 300n }]);
    await recordDeposited(first, await read(first, done), { hash: word(3) });
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
    await recordDeposited(first, await read(first, deposit), { hash: word(3) });
    await endDeposit(first, await read(first, deposit));
    expect(await open(true)).toEqual([]);
    expect(await queueDeposit(first, deposit)).toEqual({ outcome: "known" });
    const { network } = place;
    await forgetDeposits(first, { network, before: first.now() - 1_000 });
    expect(await read(first, deposit)).toMatchObject({ state: "done", data: undefined });
    await forgetDeposits(first, { network, before: first.now() + 1_000 });
    expect(await readDeposit(first, deposit)).toBeUndefined();
  });
});
