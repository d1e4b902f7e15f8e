import { beforeEach, describe, expect, it } from "vitest";
import { by } from "../../testing/code-payers.ts";
import {
  account,
  newDeposit,
  readDepositRow as read,
  requeue,
  word,
} from "../../testing/ledger-deposits.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { wish } from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { releasePayment } from "../payments/release-payment.ts";
import { reservePayment } from "../payments/reserve-payments.ts";
import type { NewDeposit } from "./channel-deposits.ts";
import { recordDeposited } from "./move-deposit.ts";
import { queueDeposit, type WantedDeposit } from "./queue-deposit.ts";

describe.each(engines)("deposits that a reorganisation takes back, on %s", (engine) => {
  const shared = ledgerForEachTest(engine);
  let first: LedgerContext;
  let second: LedgerContext;

  beforeEach(async () => {
    first = await shared.join("first");
    second = await shared.join("second");
  });

  /** In block 8. */
  async function execute(deposit: WantedDeposit): Promise<void> {
    expect(await queueDeposit(first, deposit)).toEqual({ outcome: "queued" });
    const done = { hash: word(3), blockNumber: 8 };
    expect(await recordDeposited(first, await read(first, deposit), done)).toBe(true);
  }

  const withCode = (number: number, parts: Partial<NewDeposit> = {}) =>
    newDeposit({
      ...{ payerHasCode: true, payer: account(number), signer: account(number) },
      gas: 400_000n,
      ...parts,
    });

  it("are promised once more where the balance is not promised to others", async () => {
    const exact = wish({ value: 600n, balance: { amount: 1_000n, blockNumber: 9n } });
    const { network, asset: token, payer } = exact.id;
    const deposit = newDeposit({ network, token, payer, amount: 600n });
    await execute(deposit);
    const held = await reservePayment(second, exact);
    if (held.outcome !== "reserved") throw new Error(held.outcome);
    expect(await requeue(first, await read(first, deposit))).toEqual({ outcome: "busy" });
    expect(await read(first, deposit)).toMatchObject({ state: "done", hash: word(3) });
    const release = { token: held.token, payer, countsAgainstPayer: false };
    await releasePayment(second, release);
    expect(await requeue(first, await read(first, deposit))).toEqual({ outcome: "queued" });
    expect(await reservePayment(second, exact)).toMatchObject({ outcome: "over_committed" });
  });

  it("are promised and spend their gas at once where their transaction waits for a block", async () => {
    const exact = wish({ value: 600n, balance: { amount: 1_000n, blockNumber: 9n } });
    const { network, asset: token, payer } = exact.id;
    const deposit = newDeposit({ network, token, payer, amount: 600n, caller: "shop" });
    await execute(deposit);
    expect(await requeue(first, await read(first, deposit), "open")).toEqual({ outcome: "sent" });
    expect(await read(first, deposit)).toMatchObject({ state: "sent", caller: "shop" });
    expect(await reservePayment(second, exact)).toMatchObject({ outcome: "over_committed" });

    const [coded, other] = [withCode(21, { gas: 800_000n }), withCode(22)];
    await execute(coded);
    expect(await requeue(first, await read(first, coded), "open")).toEqual({ outcome: "sent" });
    expect(await queueDeposit(second, other)).toMatchObject({ why: "no_gas_left" });
  });

  it("deposits of payers with code wait until the gas budget has room", async () => {
    const [deposit, other] = [withCode(21), withCode(22, { gas: 800_000n })];
    await execute(deposit);
    expect(await queueDeposit(second, other)).toEqual({ outcome: "queued" });
    expect(await requeue(first, await read(first, deposit))).toMatchObject({ why: "no_gas_left" });
    expect(await read(first, deposit)).toMatchObject({ state: "done" });
    const done = { hash: word(4), blockNumber: 8 };
    await recordDeposited(second, await read(second, other), done);
    expect(await requeue(first, await read(first, deposit))).toEqual({ outcome: "queued" });
    const exact = { ...by("0x00000000000000000000000000000000000000ee"), gasAtRisk: 700_000n };
    expect(await reservePayment(second, exact)).toMatchObject({ why: "no_gas_left" });
  });

  it("deposits of a caller wait until its gas of the hour has room", async () => {
    const deposit = newDeposit({ caller: "shop", gas: 200_000n });
    await execute(deposit);
    const others = { caller: "shop", gas: 300_000n, signer: account(7) };
    expect(await queueDeposit(second, newDeposit(others))).toEqual({ outcome: "queued" });
    expect(await requeue(first, await read(first, deposit))).toMatchObject({
      outcome: "caller_limited",
    });
    expect(await read(first, deposit)).toMatchObject({ state: "done" });
    shared.wait(3_600_000);
    expect(await requeue(first, await read(first, deposit))).toEqual({ outcome: "queued" });
  });

  it("wait for another deposit of their channel, and for the process that moves them", async () => {
    const deposit = newDeposit();
    await execute(deposit);
    const next = newDeposit({ channelId: deposit.channelId });
    expect(await queueDeposit(first, next)).toEqual({ outcome: "queued" });
    expect(await requeue(first, await read(first, deposit))).toEqual({ outcome: "busy" });
    await recordDeposited(first, await read(first, next), { hash: word(4), blockNumber: 8 });
    const row = await read(first, deposit);
    const outcomes = await Promise.all([requeue(first, row), requeue(second, row)]);
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(["busy", "queued"]);
  });
});
