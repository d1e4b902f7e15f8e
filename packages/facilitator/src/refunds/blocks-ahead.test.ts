import { expect, it, onTestFinished, vi } from "vitest";
import { type AheadLies, startNodeAhead } from "../testing/node-ahead.ts";
import {
  becomes,
  floatAccount,
  idInLedger,
  patience,
  settled,
  useRefundingDevnet,
  withFloat,
} from "../testing/refunding-devnet.ts";
import { cancel, settle } from "../testing/settling-actions.ts";

const begin = useRefundingDevnet();

/** A seller of two nodes. The first one can make blocks up, which the other has not come to. */
async function beginAhead(times: { disputeMs?: number } = {}) {
  const lies: AheadLies = { ahead: 0n, isArmed: false };
  const here = await begin("sqlite");
  await here.devnet.mine(3);
  const node = await startNodeAhead(here.devnet, lies);
  onTestFinished(() => node.close());
  let aheadMs = 0;
  const facilitator = await here.start({
    refunds: withFloat.refunds,
    network: { ...withFloat.network, rpcUrls: [node.url, node.honestUrl] },
    now: () => Date.now() + aheadMs,
    times,
  });
  /** Lets time pass, on the chain too. */
  async function pass(seconds: number): Promise<void> {
    await here.devnet.client.increaseTime({ seconds });
    aheadMs += seconds * 1_000;
  }
  return { here, node, facilitator, lies, pass };
}

it.each([
  ["waits where the chain never has it", 50n],
  ["goes out once the chain has it in another", 1_000_000_000n],
])("a refund of a payment that stands in a made-up block %s", async (_, ahead) => {
  const { here, node, facilitator, lies } = await beginAhead();
  const { devnet, balanceOf, pay } = here;
  Object.assign(lies, { ahead, isArmed: true });
  const paid = await pay();
  expect(await settle(facilitator, paid)).toMatchObject({ success: true });
  const payment = await idInLedger(facilitator, paid);
  await vi.waitFor(async () => {
    await devnet.mine(1);
    expect(await facilitator.payments.get(payment)).toMatchObject({ finalAt: expect.anything() });
  }, patience);
  const raw = node.taken();
  if (raw === undefined) throw new Error("No transaction was taken");
  const isFar = ahead > 50n;
  if (!isFar) {
    // The payer withdraws its signature. Only then the relayer's nonce is used.
    await cancel(here, devnet.accounts.buyer, paid);
    await devnet.client.sendRawTransaction({ serializedTransaction: raw });
  }
  const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
  await becomes(facilitator, here, refund, { state: "waiting", cause: "chain" });
  if (isFar) {
    lies.ahead = 0n;
    await devnet.client.sendRawTransaction({ serializedTransaction: raw });
    await becomes(facilitator, here, refund, { state: "final" });
  }
  expect(await balanceOf(floatAccount.address)).toBe(isFar ? 9_000n : 10_000n);
});

it.each([
  ["final", "that another endpoint comes to", 100n],
  ["final", "that no chain comes to", 1_000_000_000n],
  ["not final", "that no chain comes to", 1_000_000_000n],
  ["not final", "and in one of the chain", 1_000_000_000n],
])(
  "a refund whose operation is %s in a made-up block %s is not final, until the chain has it",
  async (depth, place, ahead) => {
    const { here, node, facilitator, lies, pass } = await beginAhead();
    const { devnet, balanceOf } = here;
    const payment = await settled(facilitator, here);
    await vi.waitFor(async () => {
      await devnet.mine(1);
      expect(await facilitator.payments.get(payment)).toMatchObject({ finalAt: expect.anything() });
    }, patience);
    Object.assign(lies, { ahead, isArmed: true });
    const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
    const { operation = "" } = await becomes(facilitator, here, refund, { state: "confirmed" });
    if (depth === "final") {
      await vi.waitFor(async () => {
        await devnet.mine(1);
        expect(await facilitator.payments.get(operation)).toMatchObject({
          finalAt: expect.anything(),
        });
      }, patience);
      const shown = node.shownAsUsed();
      await vi.waitFor(() => expect(node.shownAsUsed()).toBeGreaterThan(shown + 2), patience);
    }
    expect(await facilitator.refunds.get(refund.id)).toMatchObject({ state: "confirmed" });
    const raw = node.taken();
    if (raw && place.startsWith("and")) {
      await devnet.client.sendRawTransaction({ serializedTransaction: raw });
    }
    lies.ahead = 0n;
    if (ahead > 100n) await pass(4_000);
    await becomes(facilitator, here, refund, { state: "final" });
    expect(await balanceOf(floatAccount.address)).toBe(9_000n);
  },
);

it("a payment in a block far above the chain holds up no later one, once the lie has ended", async () => {
  const { here, facilitator, lies } = await beginAhead();
  const { devnet, balanceOf, pay } = here;
  Object.assign(lies, { ahead: 1_000_000_000n, isArmed: true });
  expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
  expect(await balanceOf(devnet.accounts.seller.address)).toBe(0n);
  lies.ahead = 0n;
  expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
  await vi.waitFor(async () => {
    await devnet.mine(1);
    const { payments } = await facilitator.payments.list();
    expect(payments.map(({ finalAt }) => finalAt)).not.toContain(undefined);
  }, patience);
  expect(await balanceOf(devnet.accounts.seller.address)).toBe(2_000n);
});

it("a payment in a block far above the chain is final in its own, once the lie has ended", async () => {
  const { here, node, facilitator, lies } = await beginAhead({ disputeMs: 200 });
  const { devnet, balanceOf, pay } = here;
  Object.assign(lies, { ahead: 1_000_000_000n, isArmed: true });
  const paid = await pay();
  expect(await settle(facilitator, paid)).toMatchObject({ success: true });
  const payment = await idInLedger(facilitator, paid);
  const raw = node.taken();
  if (raw === undefined) throw new Error("No transaction was taken");
  lies.ahead = 0n;
  await devnet.client.sendRawTransaction({ serializedTransaction: raw });
  await vi.waitFor(async () => {
    await devnet.mine(1);
    expect(await facilitator.payments.get(payment)).toMatchObject({ finalAt: expect.anything() });
  }, patience);
  const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
  await becomes(facilitator, here, refund, { state: "final" });
  expect(await balanceOf(floatAccount.address)).toBe(9_000n);
});
