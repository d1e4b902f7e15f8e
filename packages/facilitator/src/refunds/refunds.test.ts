import { testUsdt0 } from "@coinslot/devnet";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it, vi } from "vitest";
import {
  becomes,
  floatAccount,
  floatKey,
  idInLedger,
  patience,
  setFloat,
  settled,
  useRefundingDevnet,
  withFloat,
} from "../testing/refunding-devnet.ts";
import { idOf, reserve, settle } from "../testing/settling-actions.ts";
import { enginesByDay } from "../testing/settling-devnet.ts";
import { signRefunds } from "./sign-refunds.ts";

const begin = useRefundingDevnet();
const timeout = 120_000;

describe.each(enginesByDay("sqlite"))("refunds on %s", (engine) => {
  it(
    "gives a settled payment back from the float, once it is final",
    async () => {
      const here = await begin(engine);
      const { start, balanceOf, devnet } = here;
      const facilitator = await start(withFloat);
      const payment = await settled(facilitator, here);
      const before = await balanceOf(devnet.accounts.buyer.address);
      const request = { payment, reason: "did not work", idempotencyKey: "one" };

      const refund = await facilitator.refunds.create(request);

      expect(refund).toMatchObject({ payment, n: 1, amount: 1_000n, state: "scheduled" });
      await becomes(facilitator, here, refund, { state: "final" });
      expect(await balanceOf(devnet.accounts.buyer.address)).toBe(before + 1_000n);
      expect(await balanceOf(floatAccount.address)).toBe(9_000n);
      expect(await facilitator.refunds.create(request)).toMatchObject({ id: refund.id });
      // It is no sale.
      expect((await facilitator.payments.list()).payments).toHaveLength(1);
      expect(await facilitator.stats()).toMatchObject([{ state: "confirmed", count: 1 }]);
    },
    timeout,
  );

  it(
    "makes partial refunds one after the other, up to what was paid",
    async () => {
      const here = await begin(engine);
      const { start, balanceOf } = here;
      const facilitator = await start(withFloat);
      const payment = await settled(facilitator, here);
      const { create } = facilitator.refunds;
      const first = await create({ payment, amount: 300n, idempotencyKey: "1" });
      const second = await create({ payment, amount: 600n, idempotencyKey: "2" });
      await expect(create({ payment, amount: 101n, idempotencyKey: "3" })).rejects.toMatchObject({
        reason: "exceeds_payment",
      });
      const rest = await create({ payment, idempotencyKey: "4" });
      expect([first.n, second.n, rest.n, rest.amount]).toEqual([1, 2, 3, 100n]);
      await expect(create({ payment, idempotencyKey: "5" })).rejects.toMatchObject({
        reason: "nothing_left",
      });
      for (const refund of [first, second, rest]) {
        await becomes(facilitator, here, refund, { state: "final" });
      }
      expect(await balanceOf(floatAccount.address)).toBe(9_000n);
    },
    timeout,
  );

  it(
    "refuses what cannot be given back, and writes nothing",
    async () => {
      const here = await begin(engine);
      const { start, pay } = here;
      const facilitator = await start(withFloat);
      const { create, list } = facilitator.refunds;
      const [paid, other] = [await pay(), await pay()];
      await reserve(facilitator, paid);
      const unsettled = await idInLedger(facilitator, paid);
      const fault = (reason: string) => ({ name: "RefundError", reason });
      await expect(create({ payment: "none", idempotencyKey: "a" })).rejects.toMatchObject(
        fault("unknown_payment"),
      );
      await expect(create({ payment: unsettled, idempotencyKey: "a" })).rejects.toMatchObject(
        fault("not_settled"),
      );
      expect(await settle(facilitator, other)).toMatchObject({ success: true });
      const payment = await idInLedger(facilitator, other);
      await expect(create({ payment, amount: 1_001n, idempotencyKey: "a" })).rejects.toMatchObject(
        fault("exceeds_payment"),
      );
      await expect(create({ payment, amount: 0n, idempotencyKey: "a" })).rejects.toMatchObject(
        fault("invalid_request"),
      );
      await expect(create({ payment, idempotencyKey: "" })).rejects.toMatchObject(
        fault("invalid_request"),
      );
      expect((await list()).refunds).toEqual([]);
      const refund = await create({ payment, amount: 10n, idempotencyKey: "a" });
      await expect(create({ payment, amount: 11n, idempotencyKey: "a" })).rejects.toMatchObject(
        fault("key_conflict"),
      );
      const { operation } = await becomes(facilitator, here, refund, { state: "final" });
      await expect(create({ payment: operation ?? "", idempotencyKey: "b" })).rejects.toMatchObject(
        fault("is_refund"),
      );
    },
    timeout,
  );

  it(
    "serves a payment no more once its refund has begun, and none that is being served",
    async () => {
      const here = await begin(engine);
      const { start, pay } = here;
      const facilitator = await start(withFloat);
      const paid = await pay();
      const reservation = await reserve(facilitator, paid);
      expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: true });
      const payment = await idInLedger(facilitator, paid);
      await expect(
        facilitator.refunds.create({ payment, idempotencyKey: "a" }),
      ).rejects.toMatchObject({ reason: "in_use" });
      await facilitator.release(reservation, "handler_failed");
      const request = { id: idOf(paid), fingerprint: "GET /a" };
      expect(await facilitator.lookUp(request)).toMatchObject({ state: "resumable" });

      await facilitator.refunds.create({ payment, idempotencyKey: "a" });

      const { value, validBefore, to } = paid.authorization;
      expect(await facilitator.lookUp(request)).toMatchObject({ state: "refunded" });
      expect(
        await facilitator.reserve({ ...request, value, validBefore, payTo: to }),
      ).toMatchObject({ state: "refunded" });
      expect(await settle(facilitator, paid)).toMatchObject({
        success: false,
        errorReason: "payment_refunded",
      });
      expect(await facilitator.payments.get(payment)).toMatchObject({ deliveredAt: undefined });
    },
    timeout,
  );

  it(
    "waits for money in the float, and for the limit of a day",
    async () => {
      const here = await begin(engine, { float: 0n });
      const { start, balanceOf } = here;
      const facilitator = await start({
        ...withFloat,
        refunds: { privateKey: floatKey, maxPerDay: 1_500n },
      });
      const [one, two] = [await settled(facilitator, here), await settled(facilitator, here)];
      const first = await facilitator.refunds.create({ payment: one, idempotencyKey: "1" });
      await becomes(facilitator, here, first, { state: "waiting", cause: "float_balance" });
      await setFloat(here, 5_000n);
      await becomes(facilitator, here, first, { state: "final" });
      const second = await facilitator.refunds.create({ payment: two, idempotencyKey: "2" });
      await becomes(facilitator, here, second, { state: "waiting", cause: "daily_limit" });
      expect(await balanceOf(floatAccount.address)).toBe(4_000n);
    },
    timeout,
  );

  it(
    "signs nothing while the operator has stopped its float, and ends what is under way",
    async () => {
      const here = await begin(engine);
      const { start, balanceOf, devnet } = here;
      const facilitator = await start(withFloat);
      const float = { kind: "float", name: floatAccount.address } as const;
      const [one, two] = [await settled(facilitator, here), await settled(facilitator, here)];
      await devnet.mine(3);
      await devnet.setAutomine(false);
      const sent = await facilitator.refunds.create({ payment: one, idempotencyKey: "1" });
      await vi.waitFor(
        async () => expect(await facilitator.refunds.get(sent.id)).toMatchObject({ state: "sent" }),
        patience,
      );
      await facilitator.stops.set(float, { reason: "its key may have leaked" });
      await devnet.setAutomine(true);
      await devnet.mine();
      await becomes(facilitator, here, sent, { state: "final" });

      const before = await balanceOf(floatAccount.address);
      const refund = await facilitator.refunds.create({ payment: two, idempotencyKey: "2" });
      await becomes(facilitator, here, refund, { state: "waiting", cause: "stopped" });
      expect(await balanceOf(floatAccount.address)).toBe(before);

      await facilitator.stops.clear(float);
      await becomes(facilitator, here, refund, { state: "final" });
      expect(await balanceOf(floatAccount.address)).toBe(before - 1_000n);
    },
    timeout,
  );

  it(
    "leaves a payer with code to the operator, and then pays its own address",
    async () => {
      const here = await begin(engine);
      const { start, balanceOf, devnet } = here;
      const facilitator = await start(withFloat);
      const payment = await settled(facilitator, here);
      const { address } = devnet.accounts.buyer;
      await devnet.client.setCode({ address, bytecode: "0x00" });
      const before = await balanceOf(address);
      const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
      await becomes(facilitator, here, refund, { state: "review", cause: "payer_has_code" });
      expect(await facilitator.refunds.approve(refund.id)).toMatchObject({ state: "scheduled" });
      await becomes(facilitator, here, refund, { state: "final" });
      expect(await balanceOf(address)).toBe(before + 1_000n);
      await expect(facilitator.refunds.approve(refund.id)).rejects.toMatchObject({
        reason: "wrong_state",
      });
    },
    timeout,
  );

  it(
    "pays no other address where the token refuses its payer",
    async () => {
      const here = await begin(engine);
      const { start, balanceOf, devnet } = here;
      const facilitator = await start(withFloat);
      const payment = await settled(facilitator, here);
      const setBlocked = async (isBlocked: boolean) => {
        const hash = await devnet.client.writeContract({
          account: devnet.accounts.deployer,
          address: devnet.token,
          abi: testUsdt0.abi,
          functionName: "setBlocked",
          args: [devnet.accounts.buyer.address, isBlocked],
        });
        await devnet.client.waitForTransactionReceipt({ hash });
      };
      await setBlocked(true);
      const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
      await becomes(facilitator, here, refund, { state: "blocked", cause: "token_refuses" });
      expect(await balanceOf(floatAccount.address)).toBe(10_000n);
      await setBlocked(false);
      await facilitator.refunds.approve(refund.id);
      await becomes(facilitator, here, refund, { state: "final" });
    },
    timeout,
  );

  it(
    "waits for a signature without a key, and sends one that was made elsewhere",
    async () => {
      const here = await begin(engine);
      const { start, balanceOf } = here;
      const { address } = floatAccount;
      const facilitator = await start({ ...withFloat, refunds: { address } });
      const payment = await settled(facilitator, here);
      const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
      await becomes(facilitator, here, refund, { state: "unsigned", cause: "no_float" });
      const unsigned = await facilitator.refunds.exportUnsigned();
      expect(unsigned.refunds).toMatchObject([{ id: refund.id, amount: "1000" }]);
      await expect(
        signRefunds(unsigned, privateKeyToAccount(`0x${"11".repeat(32)}`)),
      ).rejects.toThrow(/to be signed by/);
      const signed = await signRefunds(JSON.parse(JSON.stringify(unsigned)), floatAccount);
      const [only] = signed.refunds;
      if (only === undefined) throw new Error("Nothing was signed");
      const changed = { ...signed, refunds: [{ ...only, validBefore: "99999999999" }] };
      expect(await facilitator.refunds.importSigned(changed)).toMatchObject({
        sent: [],
        refused: [{ id: refund.id }],
      });
      const endless = await signRefunds(
        {
          ...unsigned,
          refunds: unsigned.refunds.map((each) => ({
            ...each,
            validBefore: String(2n ** 256n - 1n),
          })),
        },
        floatAccount,
      );
      expect(await facilitator.refunds.importSigned(endless)).toMatchObject({
        sent: [],
        refused: [{ id: refund.id, message: expect.stringContaining("31 days") }],
      });
      expect(await facilitator.refunds.importSigned(signed)).toMatchObject({
        sent: [{ id: refund.id, state: "sent" }],
      });
      await becomes(facilitator, here, refund, { state: "final" });
      expect(await facilitator.refunds.importSigned(signed)).toMatchObject({ refused: [] });
      expect(await balanceOf(address)).toBe(9_000n);
    },
    timeout,
  );
});
