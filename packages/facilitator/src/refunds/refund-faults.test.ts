import { once } from "node:events";
import { testUsdt0, withDatabase } from "@coinslot/devnet";
import { useProgram } from "@coinslot/devnet/use-program";
import { encodeFunctionData } from "viem";
import { describe, expect, it, vi } from "vitest";
import type { CoinslotFacilitator } from "../create-facilitator.ts";
import type { FaultPointName } from "../settle/context.ts";
import {
  becomes,
  floatAccount,
  floatKey,
  idInLedger,
  loseRefund,
  patience,
  setFloat,
  settled,
  useRefundingDevnet,
  withFloat,
} from "../testing/refunding-devnet.ts";
import { settle } from "../testing/settling-actions.ts";
import { settlingProgram, spawnSettling } from "../testing/settling-child.ts";
import { enginesByDay, type SettlingDevnet } from "../testing/settling-devnet.ts";

const begin = useRefundingDevnet();
const program = useProgram(settlingProgram);
const timeout = 120_000;
const soon = { heartbeatLeaseSeconds: 1.5, times: { leaseMs: 1_500, sweepMs: 200, resendMs: 300 } };

/** Executes the stored authorization of a refund as another sender. */
async function executeAsStranger({ devnet, ledger }: SettlingDevnet): Promise<void> {
  const [row] = await withDatabase(ledger.url, ({ read }) =>
    read(
      "select payer, pay_to, valid_before, nonce, signature from payments join orders on orders.payment_id = payments.id where refund_of is not null",
    ),
  );
  if (row === undefined) throw new Error("No operation of a refund");
  const hex = (name: string): `0x${string}` => `0x${String(row[name]).slice(2)}`;
  const validBefore = BigInt(String(row.valid_before).replace(/^\d\d:/, ""));
  const hash = await devnet.client.writeContract({
    account: devnet.accounts.deployer,
    address: devnet.token,
    abi: testUsdt0.abi,
    functionName: "transferWithAuthorization",
    args: [hex("payer"), hex("pay_to"), 1_000n, 0n, validBefore, hex("nonce"), hex("signature")],
  });
  await devnet.client.waitForTransactionReceipt({ hash });
}

const reasonOf = (error: unknown) =>
  typeof error === "object" && error !== null && "reason" in error ? error.reason : error;

describe.each(enginesByDay("postgres"))("money of a float on %s", (engine) => {
  it(
    "moves at the next start after a clock that was far ahead is put back",
    async () => {
      const here = await begin(engine);
      const options = { ...withFloat, times: { refundMs: 50 } };
      const facilitator = await here.start(options);
      const payment = await settled(facilitator, here);
      await setFloat(here, 0n);
      const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
      await becomes(facilitator, here, refund, { state: "waiting", cause: "float_balance" });
      // As that clock has written it.
      const year = 365 * 86_400_000;
      await withDatabase(here.ledger.url, ({ execute }) =>
        execute(`update refunds set next_at = next_at + ${year}`),
      );
      await setFloat(here, 1_000n);
      await facilitator.close();
      await becomes(await here.start(options), here, refund, { state: "final" });
    },
    timeout,
  );

  it(
    "goes out though a clock that was far ahead has signed as much as a day may have",
    async () => {
      const here = await begin(engine);
      const refunds = { privateKey: floatKey, maxPerDay: 1_000n };
      const facilitator = await here.start({ ...withFloat, refunds, times: { refundMs: 50 } });
      const giveBack = async () => {
        const payment = await settled(facilitator, here);
        return facilitator.refunds.create({ payment, idempotencyKey: payment });
      };
      await becomes(facilitator, here, await giveBack(), { state: "final" });
      const year = 365 * 86_400_000;
      await withDatabase(here.ledger.url, ({ execute }) =>
        execute(`update refunds set signed_at = signed_at + ${year}`),
      );
      await becomes(facilitator, here, await giveBack(), { state: "final" });
    },
    timeout,
  );

  it(
    "never exceeds a payment, by concurrent refunds of two processes",
    async () => {
      const here = await begin(engine);
      const { start, balanceOf } = here;
      const one = await start(withFloat);
      // A SQLite file has one process.
      const two = engine === "postgres" ? await start(withFloat) : one;
      const payment = await settled(one, here);
      const wishes = Array.from({ length: 12 }, (_, index) =>
        (index % 2 === 0 ? one : two).refunds
          .create({ payment, amount: 300n, idempotencyKey: `${index}` })
          .then(
            () => "created",
            (error: unknown) => reasonOf(error),
          ),
      );
      const outcomes = await Promise.all(wishes);
      expect(outcomes.filter((outcome) => outcome === "created")).toHaveLength(3);
      expect(outcomes.filter((outcome) => outcome === "exceeds_payment")).toHaveLength(9);
      const same = await Promise.all(
        [one, two, one, two].map(({ refunds }) =>
          refunds.create({ payment, idempotencyKey: "the rest" }),
        ),
      );
      expect(new Set(same.map(({ id }) => id)).size).toBe(1);
      for (const refund of (await one.refunds.list({ payment })).refunds) {
        await becomes(one, here, refund, { state: "final" });
      }
      expect(await balanceOf(floatAccount.address)).toBe(9_000n);
    },
    timeout,
  );

  it.each(["refund_signed", "refund_queued", "stored", "broadcast"] satisfies FaultPointName[])(
    "goes out once where a process is killed at %s",
    async (dieAt) => {
      const here = await begin(engine);
      const { start, balanceOf, devnet } = here;
      const first = await start(withFloat);
      const payment = await settled(first, here);
      await first.close();
      await devnet.mine(5);
      const child = spawnSettling(program(), here, [], {
        dieAt,
        refunds: { privateKey: floatKey, payments: [payment] },
      });
      const mining = setInterval(() => void devnet.mine(1), 200);
      const [, signal]: unknown[] = await once(child, "close");
      clearInterval(mining);
      expect(signal).toBe("SIGKILL");

      const next = await start({ ...withFloat, ...soon });
      const [refund] = (await next.refunds.list()).refunds;
      if (refund === undefined) throw new Error("The refund is lost");
      await becomes(next, here, refund, { state: "final" });
      expect(await balanceOf(floatAccount.address)).toBe(9_000n);
    },
    timeout,
  );

  it(
    "goes out once where the refund's block leaves the chain",
    async () => {
      const here = await begin(engine);
      const { start, balanceOf, devnet } = here;
      const network = { finalAfter: 6 };
      const facilitator = await start({ ...withFloat, network });
      const payment = await settled(facilitator, here);
      await devnet.mine(7);
      const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
      await vi.waitFor(async () => {
        expect(await facilitator.refunds.get(refund.id)).toMatchObject({ state: "confirmed" });
      }, patience);
      await devnet.reorg({ depth: 1 });
      expect(await balanceOf(floatAccount.address)).toBe(10_000n);
      await becomes(facilitator, here, refund, { state: "final" });
      expect(await balanceOf(floatAccount.address)).toBe(9_000n);
    },
    timeout,
  );

  it(
    "waits for a payment that a reorganisation takes back, and stays if it never comes",
    async () => {
      const here = await begin(engine);
      const { start, balanceOf, devnet, pay } = here;
      const network = { finalAfter: 4 };
      let aheadMs = 0;
      const facilitator = await start({ ...withFloat, network, now: () => Date.now() + aheadMs });
      await devnet.mine(5);
      const now = Math.floor(Date.now() / 1000);
      const paid = await pay({ authorization: { validBefore: BigInt(now + 100) } });
      expect(await settle(facilitator, paid)).toMatchObject({ success: true });
      const payment = await idInLedger(facilitator, paid);
      const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
      // The buyer has spent its balance on the new branch, so the payment fails there.
      const { buyer } = devnet.accounts;
      const fees = await devnet.client.estimateFeesPerGas();
      const rawTransaction = await drainBuyer(here, fees);
      await devnet.reorg({ depth: 1, transactions: [{ rawTransaction, blockIndex: 0 }] });
      expect(await balanceOf(buyer.address)).toBe(0n);
      await vi.waitFor(async () => {
        await devnet.mine(1);
        expect(await facilitator.payments.get(payment)).toMatchObject({ state: "failed" });
      }, patience);
      expect(await facilitator.refunds.get(refund.id)).toMatchObject({ state: "scheduled" });
      await devnet.client.increaseTime({ seconds: 3_600 });
      aheadMs = 3_600_000;
      await becomes(facilitator, here, refund, { state: "void", cause: "payment_not_executed" });
      expect(await balanceOf(floatAccount.address)).toBe(10_000n);
    },
    timeout,
  );

  it(
    "counts an execution by another sender",
    async () => {
      const here = await begin(engine);
      const { start, balanceOf, devnet } = here;
      let execute = Promise.resolve();
      const facilitator: CoinslotFacilitator = await start({
        ...withFloat,
        async faultPoint(name) {
          if (name === "refund_queued") {
            execute = executeAsStranger(here);
            await execute;
          }
          // The planner waits until it has.
          if (name === "signed" && execute !== undefined) await execute;
        },
      });
      const payment = await settled(facilitator, here);
      await devnet.mine(3);
      const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
      await becomes(facilitator, here, refund, { state: "final", n: 1, amount: 1_000n });
      expect(await balanceOf(floatAccount.address)).toBe(9_000n);
    },
    timeout,
  );

  it(
    "is signed anew with the same nonce where its authorization has expired",
    async () => {
      const here = await begin(engine);
      const { start, balanceOf, devnet } = here;
      let isFirst = true;
      let aheadMs = 0;
      const facilitator = await start({
        ...withFloat,
        now: () => Date.now() + aheadMs,
        refunds: { privateKey: floatKey, validForSeconds: 120 },
        async faultPoint(name) {
          if (name !== "refund_signed" || !isFirst) return;
          isFirst = false;
          await setFloat(here, 0n);
        },
      });
      const payment = await settled(facilitator, here);
      await devnet.mine(3);
      const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
      const failed = await vi.waitFor(async () => {
        const row = await facilitator.refunds.get(refund.id);
        expect(row).toMatchObject({ state: "sent" });
        expect(await facilitator.payments.get(row?.operation ?? "")).toMatchObject({
          state: "failed",
        });
        return row;
      }, patience);
      await devnet.client.increaseTime({ seconds: 600 });
      aheadMs = 600_000;
      await vi.waitFor(async () => {
        await devnet.mine(1);
        expect(await facilitator.refunds.get(refund.id)).toMatchObject({ state: "waiting" });
      }, patience);
      await setFloat(here, 5_000n);
      const done = await becomes(facilitator, here, refund, { state: "final" });
      expect(done.nonce).toBe(failed?.nonce);
      expect(done.validBefore).not.toBe(failed?.validBefore);
      expect(await balanceOf(floatAccount.address)).toBe(4_000n);
    },
    timeout,
  );

  it.each([
    ["in the newest blocks", 0, {}],
    ["more blocks ago than one look searches", 120, {}],
    ["after one that was cancelled", 0, { isOneCancelled: true }],
  ])(
    "is not sent again where a restored backup has lost the refund: it is adopted, %s",
    async (_when, since, lost) => {
      const here = await begin(engine);
      const { start, balanceOf, devnet } = here;
      const first = await start(withFloat);
      const payment = await settled(first, here);
      await devnet.mine(3);
      await first.close();
      await loseRefund(here, payment, lost);
      await devnet.mine(since);

      const third = await start({
        ...withFloat,
        refunds: { ...withFloat.refunds, searchBlocks: 50 },
        times: { refundMs: 100 },
      });
      expect((await third.refunds.list()).refunds).toEqual([]);
      const again = await third.refunds.create({
        payment,
        amount: 400n,
        idempotencyKey: "after",
      });
      await becomes(third, here, again, {
        state: "final",
        amount: 1_000n,
        requested: 400n,
        cause: "executed_elsewhere",
      });
      await expect(third.refunds.create({ payment, idempotencyKey: "more" })).rejects.toMatchObject(
        { reason: "nothing_left" },
      );
      expect(await balanceOf(floatAccount.address)).toBe(9_000n);
    },
    timeout,
  );
});

/** A transaction of the buyer that sends all that it has elsewhere. */
async function drainBuyer(
  { devnet }: SettlingDevnet,
  fees: { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint },
): Promise<`0x${string}`> {
  const { buyer } = devnet.accounts;
  return buyer.signTransaction({
    ...fees,
    chainId: devnet.chainId,
    nonce: await devnet.client.getTransactionCount({ address: buyer.address }),
    to: devnet.token,
    data: encodeFunctionData({
      abi: testUsdt0.abi,
      functionName: "transfer",
      args: [devnet.accounts.deployer.address, 1_000_000_000n],
    }),
    gas: 200_000n,
  });
}
