import { systemClock } from "@coinslot/chain";
import { smartAccountAnswers } from "@coinslot/devnet";
import type { SettleResponse } from "@coinslot/protocol";
import { toHex } from "viem";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import { holdRequests } from "../../testing/settling-actions.ts";
import {
  enginesByDay,
  type SettlingDevnet,
  startSettlingDevnet,
} from "../../testing/settling-devnet.ts";

type Paid = Awaited<ReturnType<SettlingDevnet["pay"]>>;

let settling: SettlingDevnet | undefined;

afterEach(async () => {
  await settling?.stop();
  settling = undefined;
});

function settle(facilitator: CoinslotFacilitator, paid: Paid): Promise<SettleResponse> {
  return facilitator.settle(paid.paymentPayload, paid.paymentRequirements);
}

describe.each(enginesByDay("sqlite"))("a batch that reverts as a whole, on %s", (engine) => {
  it("is split until each payment has its own outcome", async () => {
    settling = await startSettlingDevnet(engine);
    const { devnet, start, pay, balanceOf } = settling;
    const facilitator = await start({ maxPaymentsPerTransaction: 16 });
    // Every transaction through Multicall3 fails from here on, so no batch of any size can succeed.
    await devnet.client.setCode({ address: devnet.multicall3, bytecode: "0x5f5ffd" });
    const payments = await Promise.all(Array.from({ length: 16 }, () => pay()));
    const settled = await Promise.all(payments.map((paid) => settle(facilitator, paid)));
    expect(settled.filter(({ success }) => success)).toHaveLength(16);
    expect(new Set(settled.map(({ transaction }) => transaction)).size).toBe(16);
    const { relayer, seller } = devnet.accounts;
    // At least one batch was tried, and at most one of sixteen, four of four, and single payments.
    const used = await devnet.client.getTransactionCount({ address: relayer.address });
    expect(used).toBeGreaterThan(16);
    expect(used).toBeLessThanOrEqual(21);
    expect(await balanceOf(seller.address)).toBe(16_000n);
  });
});

describe("a reverting batch of payments with different depths", () => {
  it("is split for the last of them as for the first", async () => {
    settling = await startSettlingDevnet("sqlite");
    const { devnet, start, pay, balanceOf } = settling;
    const serveAfter = (amount: bigint) => (amount > 500n ? 2 : 0);
    const facilitator = await start({ network: { serveAfter } });
    await devnet.client.setCode({ address: devnet.multicall3, bytecode: "0x5f5ffd" });
    const payments = await Promise.all([pay({ amount: 500n }), pay({ amount: 501n })]);
    const [small, large] = payments.map((paid) => settle(facilitator, paid));
    expect(await small).toMatchObject({ success: true });
    await devnet.mine(2);
    const { address } = devnet.accounts.seller;
    await vi.waitFor(async () => expect(await balanceOf(address)).toBe(1_001n), 20_000);
    await devnet.mine(3);
    expect(await large).toMatchObject({ success: true });
  });

  it("is split also after a restart that finds no Multicall3", async () => {
    settling = await startSettlingDevnet("sqlite");
    const { devnet, start, pay, balanceOf } = settling;
    const { address } = devnet.accounts.seller;
    const serveAfter = (amount: bigint) => (amount > 500n ? 2 : 0);
    const requests = holdRequests();
    const before = await start({ network: { serveAfter }, ...requests.options });
    await devnet.client.setCode({ address: devnet.multicall3, bytecode: "0x5f5ffd" });
    const [small, large] = await Promise.all([pay({ amount: 500n }), pay({ amount: 501n })]);
    const pending = settle(before, large);
    expect(await settle(before, small)).toMatchObject({ success: true });
    requests.end();
    expect(await pending).toMatchObject({ errorReason: "settlement_pending" });
    await before.close();
    await devnet.client.setCode({ address: devnet.multicall3, bytecode: "0x" });
    const after = await start({ network: { serveAfter } });
    const settled = settle(after, large);
    await devnet.mine(2);
    await vi.waitFor(async () => expect(await balanceOf(address)).toBe(1_001n), 20_000);
    await devnet.mine(2);
    expect(await settled).toMatchObject({ success: true });
  });
});

/**
 * Options of a facilitator whose time a test passes. Its lease and its transactions outlive that.
 */
function passTime() {
  const ms = 600_000;
  let passedMs = 0;
  return {
    options: {
      times: { leaseMs: ms, resendMs: ms, replaceMs: ms },
      clock: { ...systemClock, now: () => systemClock.now() + passedMs },
    },
    pass(more: number) {
      passedMs += more;
    },
  };
}

/** Lets payments gather behind a transaction that no block takes, so that they go out together. */
async function gather(
  { devnet, pay }: SettlingDevnet,
  facilitator: CoinslotFacilitator,
  { payments, time }: { payments: readonly Paid[]; time: ReturnType<typeof passTime> },
) {
  const { client } = devnet;
  const known = (await facilitator.payments.list({ limit: 200 })).payments.length;
  await devnet.setAutomine(false);
  const plug = settle(facilitator, await pay());
  await vi.waitFor(async () => expect((await client.getTxpoolStatus()).pending).toBe(1), 20_000);
  // The chain seems to have stopped, so only a full transaction follows.
  time.pass(20_000);
  const settled: Promise<SettleResponse>[] = [];
  for (const [index, paid] of payments.entries()) {
    settled.push(settle(facilitator, paid));
    await vi.waitFor(
      async () =>
        expect((await facilitator.payments.list({ limit: 200 })).payments).toHaveLength(
          known + index + 2,
        ),
      20_000,
    );
  }
  return { plug, settled };
}

async function createBurner({ devnet, pay }: SettlingDevnet) {
  const [burner] = devnet.accounts.others;
  if (burner === undefined) throw new Error("No account");
  await devnet.mint({ to: burner.address, amount: 1_000n });
  const bytecode = await devnet.client.getCode({ address: await devnet.deploySmartAccount() });
  if (bytecode === undefined) throw new Error("No code");
  return {
    paid: await pay({ signer: burner }),
    /** Its account gets code (EIP-7702) that burns all gas. */
    async burn() {
      await devnet.client.setCode({ address: burner.address, bytecode });
      await devnet.client.setStorageAt({
        address: burner.address,
        index: toHex(0, { size: 32 }),
        value: toHex(BigInt(smartAccountAnswers.burnsGas) << 160n, { size: 32 }),
      });
    },
  };
}

describe("a payer that burns all gas of a batch", () => {
  it.each([0, 4, 7])(
    "a payer that burns all gas of a batch at place %i costs its neighbours one attempt, and no money",
    async (place) => {
      settling = await startSettlingDevnet("sqlite");
      const { devnet, start, pay, balanceOf } = settling;
      const { relayer, seller } = devnet.accounts;
      const burner = await createBurner(settling);
      const time = passTime();
      const facilitator = await start({ maxPaymentsPerTransaction: 8, ...time.options });
      const payments = await Promise.all(Array.from({ length: 7 }, () => pay()));
      payments.splice(place, 0, burner.paid);
      const { plug, settled } = await gather(settling, facilitator, { payments, time });
      await vi.waitFor(
        async () => expect((await devnet.client.getTxpoolStatus()).pending).toBe(2),
        20_000,
      );
      // The batch is out: only now its payer changes.
      await burner.burn();
      await devnet.setAutomine(true);
      await devnet.mine();
      expect(await plug).toMatchObject({ success: true });
      const outcomes = await Promise.all(settled);
      expect(outcomes.map(({ success }) => success)).toEqual(
        outcomes.map((_, index) => index !== place),
      );
      expect(await balanceOf(seller.address)).toBe(8_000n);
      // The plug, the reverted batch, and the neighbours in smaller batches.
      const used = await devnet.client.getTransactionCount({ address: relayer.address });
      expect(used).toBeLessThanOrEqual(6);
    },
  );

  it("cuts the next minute's batches to a quarter of their payments, so that it burns less", async () => {
    settling = await startSettlingDevnet("sqlite");
    const { devnet, start, pay } = settling;
    const time = passTime();
    const burner = await createBurner(settling);
    const facilitator = await start({
      maxPaymentsPerTransaction: 16,
      ...time.options,
    });
    const pending = async () => (await devnet.client.getTxpoolStatus()).pending;
    const payments = await Promise.all(Array.from({ length: 15 }, () => pay()));
    const spoilt = await gather(settling, facilitator, {
      payments: [...payments, burner.paid],
      time,
    });
    await vi.waitFor(async () => expect(await pending()).toBe(2), 20_000);
    await burner.burn();
    await devnet.setAutomine(true);
    await devnet.mine();
    await Promise.all([spoilt.plug, ...spoilt.settled]);

    for (const { afterMs, transactions } of [
      { afterMs: 0, transactions: 4 },
      { afterMs: 60_000, transactions: 1 },
    ]) {
      time.pass(afterMs);
      const more = await Promise.all(Array.from({ length: 16 }, () => pay()));
      const { plug, settled } = await gather(settling, facilitator, { payments: more, time });
      await vi.waitFor(async () => expect(await pending()).toBe(1 + transactions), 20_000);
      await devnet.setAutomine(true);
      await devnet.mine();
      const outcomes = await Promise.all([plug, ...settled]);
      expect(outcomes.every(({ success }) => success)).toBe(true);
    }
  });
});
