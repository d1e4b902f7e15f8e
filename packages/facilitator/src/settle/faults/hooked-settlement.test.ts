import { afterEach, describe, expect, it } from "vitest";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import type { HookSet } from "../../hooks.ts";
import { type SettlingDevnet, startSettlingDevnet } from "../../testing/settling-devnet.ts";

type Paid = Awaited<ReturnType<SettlingDevnet["pay"]>>;

let settling: SettlingDevnet | undefined;

afterEach(async () => {
  await settling?.stop();
  settling = undefined;
});

async function begin(hooks: Partial<HookSet>) {
  settling = await startSettlingDevnet("sqlite");
  const facilitator = await settling.start({ hooks });
  return { ...settling, facilitator };
}

const verify = (facilitator: CoinslotFacilitator, paid: Paid) =>
  facilitator.verify(paid.paymentPayload, paid.paymentRequirements);
const settle = (facilitator: CoinslotFacilitator, paid: Paid) =>
  facilitator.settle(paid.paymentPayload, paid.paymentRequirements);

function explode(): never {
  throw new Error("the hook broke: user=admin password=hunter2");
}

describe("a deciding hook", () => {
  it.each([
    ["throws", explode, "payment_refused"],
    ["rejects", () => Promise.reject(new Error("the hook broke")), "payment_refused"],
    ["aborts", () => ({ abort: true as const, reason: "closed" }), "closed"],
  ])(
    "a deciding hook that %s before settling leaves nothing queued or sent, and the same payment valid",
    async (_, refuse, errorReason) => {
      let isOpen = false;
      const { devnet, facilitator, pay, balanceOf } = await begin({
        onBeforeSettle: () => (isOpen ? undefined : refuse()),
        onAfterSettle: explode,
        onSettleFailure: explode,
      });
      const { relayer, seller } = devnet.accounts;
      const paid = await pay();
      const refused = await settle(facilitator, paid);
      expect(refused).toMatchObject({ success: false, errorReason, transaction: "" });
      expect(JSON.stringify(refused)).not.toMatch(/hook broke|hunter2/);
      expect((await facilitator.payments.list()).payments).toEqual([]);
      expect(await devnet.client.getTransactionCount({ address: relayer.address })).toBe(0);
      isOpen = true;
      expect(await settle(facilitator, paid)).toMatchObject({ success: true });
      expect(await balanceOf(seller.address)).toBe(1_000n);
    },
  );

  it.each([
    ["throws", explode, "payment_refused"],
    ["aborts", () => ({ abort: true as const, reason: "blocked" }), "blocked"],
  ])(
    "a deciding hook that %s before verifying makes the payment invalid, without secrets in the reason",
    async (_, refuse, invalidReason) => {
      let isOpen = false;
      const { facilitator, pay } = await begin({
        onBeforeVerify: () => (isOpen ? undefined : refuse()),
        onAfterVerify: explode,
        onVerifyFailure: explode,
      });
      const paid = await pay();
      const refused = await verify(facilitator, paid);
      expect(refused).toMatchObject({ isValid: false, invalidReason });
      expect(JSON.stringify(refused)).not.toMatch(/hook broke|hunter2/);
      isOpen = true;
      expect(await verify(facilitator, paid)).toMatchObject({ isValid: true });
    },
  );

  it("refuses a reserved payment, whose reservation can be released and taken again", async () => {
    let isOpen = false;
    const { devnet, facilitator, pay, balanceOf } = await begin({
      onBeforeSettle: () => (isOpen ? undefined : explode()),
    });
    const paid = await pay();
    const { paymentPayload, paymentRequirements, authorization } = paid;
    const request = {
      id: {
        network: paymentRequirements.network,
        asset: `0x${paymentRequirements.asset.slice(2).toLowerCase()}` as const,
        payer: `0x${authorization.from.slice(2).toLowerCase()}` as const,
        nonce: authorization.nonce,
      },
      fingerprint: "GET /a",
      value: authorization.value,
      validBefore: authorization.validBefore,
      payTo: `0x${authorization.to.slice(2).toLowerCase()}` as const,
      balance: undefined,
    };
    const first = await facilitator.reserve(request);
    if (first.state !== "reserved") throw new Error(first.state);
    const { reservation } = first;
    const refused = await facilitator.settle(paymentPayload, paymentRequirements, { reservation });
    expect(refused).toMatchObject({ success: false, errorReason: "payment_refused" });
    await facilitator.release(reservation, "refused");
    isOpen = true;
    const second = await facilitator.reserve(request);
    if (second.state !== "reserved") throw new Error(second.state);
    expect(
      await facilitator.settle(paymentPayload, paymentRequirements, {
        reservation: second.reservation,
      }),
    ).toMatchObject({ success: true });
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
  });
});

describe("observing hooks", () => {
  it("change no outcome when all of them throw", async () => {
    const { devnet, facilitator, pay, balanceOf } = await begin({
      onAfterVerify: explode,
      onVerifyFailure: explode,
      onAfterSettle: explode,
      onSettleFailure: explode,
    });
    const paid = await pay();
    const [stranger] = devnet.accounts.others;
    if (stranger === undefined) throw new Error("No account");
    const unfunded = await pay({ signer: stranger });
    expect(await verify(facilitator, paid)).toMatchObject({ isValid: true });
    expect(await verify(facilitator, unfunded)).toMatchObject({
      isValid: false,
      invalidReason: "invalid_exact_evm_insufficient_balance",
    });
    expect(await settle(facilitator, unfunded)).toMatchObject({
      success: false,
      errorReason: "invalid_exact_evm_insufficient_balance",
    });
    expect(await settle(facilitator, paid)).toMatchObject({ success: true });
    expect(await settle(facilitator, paid)).toMatchObject({ errorReason: "duplicate_settlement" });
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
  });
});
