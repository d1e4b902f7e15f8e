import { systemClock } from "@coinslot/chain";
import { describe, expect, it, vi } from "vitest";
import {
  holdRequests,
  listen,
  reserve,
  settle,
  useSettlingDevnet,
} from "../testing/settling-actions.ts";

const begin = useSettlingDevnet();

describe("the settlement engine", () => {
  it("settles one of two payments whose payer can afford one", async () => {
    const { devnet, start, pay } = await begin();
    const [poor] = devnet.accounts.others;
    if (poor === undefined) throw new Error("No account");
    await devnet.mint({ to: poor.address, amount: 1_500n });
    const facilitator = await start();
    const payments = await Promise.all([pay({ signer: poor }), pay({ signer: poor })]);
    const settled = await Promise.all(payments.map((paid) => settle(facilitator, paid)));
    expect(settled.map(({ success }) => success).sort()).toEqual([false, true]);
    expect(settled.find(({ success }) => !success)).toMatchObject({
      errorReason: "invalid_exact_evm_insufficient_balance",
    });
  });

  it("counts a mined payment once while it waits for its depth", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const [poor] = devnet.accounts.others;
    if (poor === undefined) throw new Error("No account");
    await devnet.mint({ to: poor.address, amount: 3_000n });
    const facilitator = await start({ network: { serveAfter: 3, finalAfter: 3 } });
    const first = settle(facilitator, await pay({ signer: poor }));
    await vi.waitFor(async () => expect(await balanceOf(poor.address)).toBe(2_000n), 20_000);

    const exact = await pay({ signer: poor, amount: 2_000n });
    const held = await reserve(facilitator, exact);
    // A committed, unmined amount still counts.
    const { paymentPayload, paymentRequirements } = await pay({ signer: poor });
    expect(await facilitator.settle(paymentPayload, paymentRequirements)).toMatchObject({
      errorReason: "invalid_exact_evm_insufficient_balance",
    });
    const second = settle(facilitator, exact, held);
    await vi.waitFor(async () => expect(await balanceOf(poor.address)).toBe(0n), 20_000);
    await devnet.mine(3);
    expect(await Promise.all([first, second])).toMatchObject([
      { success: true },
      { success: true },
    ]);
  });

  it("repeats the answer to the same idempotency key, and refuses a duplicate settlement without one", async () => {
    const { start, pay } = await begin();
    const facilitator = await start();
    const paid = await pay();
    const keyed = { idempotencyKey: "order 7" };
    const first = await facilitator.settle(paid.paymentPayload, paid.paymentRequirements, keyed);
    expect(first).toMatchObject({ success: true });
    expect(await facilitator.settle(paid.paymentPayload, paid.paymentRequirements, keyed)).toEqual(
      first,
    );
    expect(await settle(facilitator, paid)).toMatchObject({
      success: false,
      errorReason: "duplicate_settlement",
      transaction: first.transaction,
    });
  });

  it("settles payments of one payer under one key of two recipients, and refuses a second of one", async () => {
    const { devnet, start, pay } = await begin();
    const facilitator = await start();
    const payments = [
      await pay(),
      await pay({ payTo: devnet.accounts.deployer.address }),
      await pay({ payTo: devnet.accounts.deployer.address }),
    ];
    const settled = [];
    for (const { paymentPayload, paymentRequirements } of payments) {
      const keyed = { idempotencyKey: "order 7" };
      settled.push(await facilitator.settle(paymentPayload, paymentRequirements, keyed));
    }
    expect(settled).toMatchObject([
      { success: true },
      { success: true },
      { success: false, errorReason: "duplicate_settlement" },
    ]);
  });

  it("answers pending with the hash, and resumes the same payment without a second transfer", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const requests = holdRequests();
    const facilitator = await start(requests.options);
    const events = listen(facilitator);
    await devnet.setAutomine(false);
    const paid = await pay();
    const first = settle(facilitator, paid);
    await vi.waitFor(() => expect(events).toEqual(["settle_started"]), 20_000);
    requests.end();
    const pending = await first;
    expect(pending).toMatchObject({ success: false, errorReason: "settlement_pending" });
    expect(pending.transaction).toMatch(/^0x[0-9a-f]{64}$/);
    await devnet.setAutomine(true);
    await devnet.mine();
    await vi.waitFor(() => expect(events).toEqual(["settle_started", "settle_completed"]), 20_000);
    expect(await settle(facilitator, paid)).toMatchObject({
      success: true,
      transaction: pending.transaction,
    });
    expect(await settle(facilitator, paid)).toMatchObject({ errorReason: "duplicate_settlement" });
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
  });

  it("reports a settled payment as success only for its own payer, seller and amount", async () => {
    const { devnet, start, pay } = await begin();
    const { buyer, deployer, seller } = devnet.accounts;
    const facilitator = await start({ settleTimeoutSeconds: 0.3 });
    const events = listen(facilitator);
    await devnet.setAutomine(false);
    const own = await pay({ payTo: deployer.address });
    expect(await settle(facilitator, own)).toMatchObject({ errorReason: "settlement_pending" });
    await devnet.setAutomine(true);
    await devnet.mine();
    await vi.waitFor(() => expect(events).toContain("settle_completed"), 20_000);

    const { nonce } = own.authorization;
    const changes = [
      { authorization: { nonce, from: buyer.address }, payTo: seller.address, signer: deployer },
      { authorization: { nonce, from: buyer.address }, payTo: deployer.address, amount: 9_000n },
      { authorization: { nonce, to: deployer.address }, payTo: seller.address },
      { authorization: { nonce, value: 1_000n }, payTo: deployer.address, amount: 9_000n },
    ];
    for (const change of changes) {
      expect(await settle(facilitator, await pay(change))).toMatchObject({ success: false });
    }
    expect(await settle(facilitator, own)).toMatchObject({ success: true });
  });

  it("settles a payment of a contract account alone", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const facilitator = await start();
    const { buyer, seller } = devnet.accounts;
    const account = await devnet.deploySmartAccount({ owner: buyer.address });
    await devnet.mint({ to: account, amount: 1_000n });
    const from: `0x${string}` = `0x${account.slice(2).toLowerCase()}`;
    const payments = [pay(), pay({ authorization: { from } }), pay()];
    const settled = await Promise.all(
      (await Promise.all(payments)).map((paid) => settle(facilitator, paid)),
    );
    expect(settled.map(({ success }) => success)).toEqual([true, true, true]);
    expect(
      settled.filter(({ transaction }) => transaction === settled[1]?.transaction),
    ).toHaveLength(1);
    expect(await balanceOf(seller.address)).toBe(3_000n);
  });

  it("settles a contract account alone after a handler outlasted the simulation cache", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    let passedMs = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + passedMs };
    const facilitator = await start({ clock });
    const { buyer, seller } = devnet.accounts;
    const account = await devnet.deploySmartAccount({ owner: buyer.address });
    await devnet.mint({ to: account, amount: 1_000n });
    const from: `0x${string}` = `0x${account.slice(2).toLowerCase()}`;
    const slow = await pay({ authorization: { from } });
    const held = await reserve(facilitator, slow);
    passedMs = 61_000;
    const quick = await pay();
    const quickHeld = await reserve(facilitator, quick);
    const settled = await Promise.all([
      settle(facilitator, slow, held),
      settle(facilitator, quick, quickHeld),
    ]);
    expect(settled).toMatchObject([{ success: true }, { success: true }]);
    expect(settled[0].transaction).not.toBe(settled[1].transaction);
    expect(await balanceOf(seller.address)).toBe(2_000n);
  });

  it("settles one payment per transaction where Multicall3 is missing", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    await devnet.client.setCode({ address: devnet.multicall3, bytecode: "0x" });
    const facilitator = await start();
    const payments = await Promise.all(Array.from({ length: 12 }, () => pay()));
    const settled = await Promise.all(payments.map((paid) => settle(facilitator, paid)));
    expect(new Set(settled.map(({ transaction }) => transaction)).size).toBe(12);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(12_000n);
  });

  it("spreads settlements over several addresses of one seed", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const seedPhrase = "test test test test test test test test test test test junk";
    const facilitator = await start({
      network: { relayer: { seedPhrase, accountIndex: 1, addressCount: 3 } },
      maxPaymentsPerTransaction: 5,
      maxTransactionsInFlight: 1,
    });
    const payments = await Promise.all(Array.from({ length: 60 }, () => pay()));
    const settled = await Promise.all(payments.map((paid) => settle(facilitator, paid)));
    expect(settled.filter(({ success }) => success)).toHaveLength(60);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(60_000n);
    const { signers } = await facilitator.getSupported();
    const counts = await Promise.all(
      (signers[devnet.network] ?? []).map((address) =>
        devnet.client.getTransactionCount({ address: `0x${address.slice(2)}` }),
      ),
    );
    expect(counts.filter((count) => count > 0).length).toBeGreaterThan(1);
  });
});
