import { FacilitatorError } from "@coinslot/protocol";
import { parseEther, parseGwei } from "viem";
import { describe, expect, it, vi } from "vitest";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import {
  holdRequests,
  listen,
  reserve,
  settle,
  useSettlingDevnet,
} from "../../testing/settling-actions.ts";

const begin = useSettlingDevnet();

describe("a transaction in flight", () => {
  it("is replaced when it is stuck, with the same nonce and a higher fee", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const facilitator = await start({ times: { resendMs: 100, replaceMs: 200 } });
    await devnet.setAutomine(false);
    const settled = settle(facilitator, await pay());
    const replaced = async () =>
      (await facilitator.metrics.getSingleMetricAsString("coinslot_transactions_total")).match(
        /event="replaced"} (\d+)/,
      );
    await vi.waitFor(
      async () => expect(Number((await replaced())?.[1])).toBeGreaterThan(1),
      20_000,
    );
    await devnet.mine();
    expect(await settled).toMatchObject({ success: true });
    const { relayer, seller } = devnet.accounts;
    expect(await devnet.client.getTransactionCount({ address: relayer.address })).toBe(1);
    expect(await balanceOf(seller.address)).toBe(1_000n);
  });

  it("is sent again when the mempools have dropped it", async () => {
    const { devnet, start, pay } = await begin();
    const facilitator = await start({ times: { resendMs: 100, replaceMs: 60_000 } });
    await devnet.setAutomine(false);
    const settled = settle(facilitator, await pay());
    await vi.waitFor(
      async () => expect((await devnet.client.getTxpoolStatus()).pending).toBe(1),
      20_000,
    );
    const { transactions } = await devnet.client.getBlock({ blockTag: "pending" });
    await Promise.all(transactions.map((hash) => devnet.client.dropTransaction({ hash })));
    await vi.waitFor(
      async () => expect((await devnet.client.getTxpoolStatus()).pending).toBe(1),
      20_000,
    );
    await devnet.setAutomine(true);
    await devnet.mine();
    expect(await settled).toMatchObject({ success: true });
  });

  it("is taken over at a start, even if its receipt could not be read at first", async () => {
    const { devnet, start, pay } = await begin();
    const paid = await pay();
    const requests = holdRequests();
    const before = await start(requests.options);
    await devnet.setAutomine(false);
    const pending = settle(before, paid);
    await vi.waitFor(
      async () => expect((await devnet.client.getTxpoolStatus()).pending).toBe(1),
      20_000,
    );
    requests.end();
    expect(await pending).toMatchObject({ errorReason: "settlement_pending" });
    await before.close();

    let isRefused = false;
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
      if (isRefused || method !== "eth_getTransactionReceipt") return ask();
      isRefused = true;
      return { error: { code: -32603, message: "internal error" } };
    });
    try {
      const after = await start({ network: { rpcUrls: [proxy.url] } });
      expect(isRefused).toBe(true);
      const settled = settle(after, paid);
      await devnet.mine();
      expect(await settled).toMatchObject({ success: true });
      await after.close();
    } finally {
      await proxy.close();
    }
  });

  it("is followed from a block that left the chain while its blocks were not read", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const facilitator = await start({ times: { resendMs: 200, settlingMs: 2_000 } });
    const events = listen(facilitator);
    await devnet.mine(2);
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    await devnet.reorg({ depth: 1 });
    // More than are read between two looks, and fewer than make it final.
    await devnet.mine(6);
    await vi.waitFor(
      () =>
        expect(events).toEqual([
          "settle_started",
          "settle_completed",
          "settle_reorganised",
          "settle_completed",
        ]),
      20_000,
    );
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
  });

  it("is followed from a reorganised block until it stands in another", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const facilitator = await start({ times: { resendMs: 200 } });
    const events = listen(facilitator);
    await devnet.mine(2);
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: true });
    await facilitator.deliver(reservation);
    await devnet.reorg({ depth: 1 });
    await devnet.mine();
    await vi.waitFor(
      () =>
        expect(events).toEqual([
          "settle_started",
          "settle_completed",
          "settle_reorganised",
          "settle_completed",
        ]),
      20_000,
    );
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
    expect(
      await facilitator.metrics.getSingleMetricAsString("coinslot_reorganised_payments_total"),
    ).toContain('delivered="true"} 1');
  });

  it("is followed even if the node fails right after the reorganisation", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    let refusals = 0;
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
      if (refusals === 0 || method !== "eth_getTransactionCount") return ask();
      refusals -= 1;
      return { error: { code: -32603, message: "internal error" } };
    });
    try {
      const facilitator = await start({
        network: { rpcUrls: [proxy.url], blockTimeSeconds: 1 },
        times: { resendMs: 200 },
      });
      const events = listen(facilitator);
      await devnet.mine(2);
      expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
      refusals = 3;
      await devnet.reorg({ depth: 1 });
      await devnet.mine();
      await vi.waitFor(() => expect(events).toContain("settle_reorganised"), 20_000);
      await vi.waitFor(() => expect(events.at(-1)).toBe("settle_completed"), 20_000);
      expect(refusals).toBe(0);
      expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
      await facilitator.close();
    } finally {
      await proxy.close();
    }
  });

  it("is followed from a reorganised block while another of its payments waits for depth", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const serveAfter = (amount: bigint) => (amount > 500n ? 3 : 0);
    const facilitator = await start({ network: { serveAfter }, times: { resendMs: 200 } });
    const events = listen(facilitator);
    const payments = await Promise.all([pay({ amount: 500n }), pay({ amount: 501n })]);
    const [small, large] = payments.map((paid) => settle(facilitator, paid));
    expect(await small).toMatchObject({ success: true });
    const known = (await facilitator.payments.list()).payments;
    expect(new Set(known.map(({ transactionId }) => transactionId)).size).toBe(1);
    await devnet.reorg({ depth: 1 });
    await devnet.mine();
    await vi.waitFor(() => expect(events).toContain("settle_reorganised"), 20_000);
    const { address } = devnet.accounts.seller;
    await vi.waitFor(async () => expect(await balanceOf(address)).toBe(1_001n), 20_000);
    await devnet.mine(3);
    expect(await large).toMatchObject({ success: true });
    await vi.waitFor(async () => {
      const { payments } = await facilitator.payments.list();
      expect(payments.map(({ state }) => state)).toEqual(["confirmed", "confirmed"]);
    }, 20_000);
  });

  it("has its payments marked final at depth", async () => {
    const { devnet, start, pay } = await begin();
    const facilitator = await start({ network: { finalAfter: 3 } });
    await settle(facilitator, await pay());
    await devnet.mine(4);
    await vi.waitFor(async () => {
      const { payments } = await facilitator.payments.list();
      expect(payments[0]?.finalAt).toBeDefined();
    }, 20_000);
  });

  it("waits for the depth that the amount requires", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const serveAfter = (amount: bigint) => (amount > 500n ? 2 : 0);
    const facilitator = await start({ network: { serveAfter } });
    const small = settle(facilitator, await pay({ amount: 500n }));
    expect(await small).toMatchObject({ success: true });
    let isSettled = false;
    const large = settle(facilitator, await pay({ amount: 501n })).finally(() => {
      isSettled = true;
    });
    // It is in a block, and later blocks stand on top of it.
    const { address } = devnet.accounts.seller;
    await vi.waitFor(async () => expect(await balanceOf(address)).toBe(1_001n), 20_000);
    await devnet.mine();
    expect(isSettled).toBe(false);
    await devnet.mine(2);
    expect(await large).toMatchObject({ success: true });
  });

  it("is never sent for a payment that expired in the queue", async () => {
    const { devnet, start, pay } = await begin();
    let offsetMs = 0;
    const facilitator = await start({
      now: () => Date.now() + offsetMs,
      network: { fees: { maxFeePerGas: 1n } },
    });
    const settled = settle(facilitator, await pay());
    await vi.waitFor(async () => {
      expect((await facilitator.payments.list({ state: "queued" })).payments).toHaveLength(1);
    }, 20_000);
    offsetMs = 300_000;
    await devnet.client.increaseTime({ seconds: 400 });
    await devnet.mine();
    expect(await settled).toMatchObject({
      success: false,
      errorReason: "invalid_exact_evm_payload_authorization_valid_before",
      transaction: "",
    });
    const { relayer } = devnet.accounts;
    expect(await devnet.client.getTransactionCount({ address: relayer.address })).toBe(0);
  });

  it("is refused while the relayer has no gas money, and accepted once it has some", async () => {
    const { devnet, start, pay } = await begin();
    const facilitator = await start();
    const events = listen(facilitator);
    const { relayer } = devnet.accounts;
    const paid = await pay();
    await devnet.client.setBalance({ address: relayer.address, value: 0n });
    const waiting = settle(facilitator, await pay());
    await vi.waitFor(() => expect(events).toContain("relayer_funds_exhausted"), 20_000);
    await expect(reserve(facilitator, paid)).rejects.toThrow(FacilitatorError);
    await devnet.client.setBalance({ address: relayer.address, value: parseEther("10") });
    await vi.waitFor(() => expect(events).toContain("relayer_funds_restored"), 20_000);
    expect(await waiting).toMatchObject({ success: true });
    const reservation = await reserve(facilitator, paid);
    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: true });
  });

  it("carries no more payments than the relayer can afford", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const { relayer, seller } = devnet.accounts;
    await devnet.client.setBalance({ address: relayer.address, value: parseEther("0.015") });
    const facilitator = await start({
      network: { fees: { maxFeePerGas: parseGwei("100"), maxPriorityFeePerGas: parseGwei("10") } },
    });
    const payments = await Promise.all(Array.from({ length: 20 }, () => pay()));
    const settled = await Promise.all(payments.map((paid) => settle(facilitator, paid)));
    expect(settled.filter(({ success }) => success)).toHaveLength(20);
    expect(await balanceOf(seller.address)).toBe(20_000n);
  });

  it("frees its gas money once its payments can no longer be executed", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const { relayer, seller } = devnet.accounts;
    let passedMs = 0;
    const facilitator = await start({
      network: {
        fees: { maxFeePerGas: parseGwei("100"), maxPriorityFeePerGas: parseGwei("10") },
        finalAfter: 0,
      },
      times: { resendMs: 100 },
      now: () => Date.now() + passedMs,
    });
    // It suffices at the known price, and is too little for so many.
    await devnet.client.setBalance({ address: relayer.address, value: parseEther("0.004") });
    const payments = await Promise.all(Array.from({ length: 20 }, () => pay()));
    const settled = Promise.all(payments.map((paid) => settle(facilitator, paid)));
    await vi.waitFor(async () => {
      expect((await facilitator.payments.list({ state: "submitted" })).payments).toHaveLength(20);
    }, 20_000);
    passedMs = 301_000;
    await devnet.client.increaseTime({ seconds: 301 });
    await devnet.mine();
    expect((await settled).every(({ success }) => !success)).toBe(true);
    const validBefore = BigInt(Math.floor(Date.now() / 1000) + 900);
    const next = await pay({ authorization: { validBefore } });
    expect(await settle(facilitator, next)).toMatchObject({ success: true });
    expect(await balanceOf(seller.address)).toBe(1_000n);
  });

  it("is sent from the funded addresses, down to the last one", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const { relayer, seller } = devnet.accounts;
    await devnet.client.setBalance({ address: relayer.address, value: 0n });
    const seedPhrase = "test test test test test test test test test test test junk";
    const facilitator = await start({
      network: { relayer: { seedPhrase, accountIndex: 1, addressCount: 2 } },
      maxPaymentsPerTransaction: 1,
    });
    const payments = await Promise.all([pay(), pay(), pay()]);
    const settled = await Promise.all(payments.map((paid) => settle(facilitator, paid)));
    expect(settled.map(({ success }) => success)).toEqual([true, true, true]);
    expect(await balanceOf(seller.address)).toBe(3_000n);
    expect(await devnet.client.getTransactionCount({ address: relayer.address })).toBe(0);
  });
});
