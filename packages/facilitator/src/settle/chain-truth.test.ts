import { systemClock } from "@coinslot/chain";
import { behaviours, testUsdt0 } from "@coinslot/devnet";
import { describe, expect, it, vi } from "vitest";
import { startNodeProxy } from "../testing/node-proxy.ts";
import {
  cancel,
  idOf,
  listen,
  reserve,
  settle,
  submitAsStranger,
  useSettlingDevnet,
} from "../testing/settling-actions.ts";

const begin = useSettlingDevnet();

describe("what the chain says of a payment", () => {
  it("settles forty-nine of fifty when one of them was poisoned", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const facilitator = await start();
    const payments = await Promise.all(Array.from({ length: 50 }, () => pay()));
    const reservations = await Promise.all(payments.map((paid) => reserve(facilitator, paid)));
    const [poisoned] = payments;
    if (poisoned === undefined) throw new Error("No payment");
    await cancel(here, devnet.accounts.buyer, poisoned);

    const settled = await Promise.all(
      payments.map((paid, index) => settle(facilitator, paid, reservations[index])),
    );

    expect(settled.filter(({ success }) => success)).toHaveLength(49);
    expect(settled[0]).toMatchObject({ success: false });
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(49_000n);
  });

  it("withholds success when the payer emptied the account after the reservation", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const facilitator = await start();
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    const [stranger] = devnet.accounts.others;
    if (stranger === undefined) throw new Error("No account");
    await devnet.client.writeContract({
      account: devnet.accounts.buyer,
      address: devnet.token,
      abi: testUsdt0.abi,
      functionName: "transfer",
      args: [stranger.address, await balanceOf(devnet.accounts.buyer.address)],
    });
    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(0n);
  });

  it("honours an authorization that a stranger submitted first", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const facilitator = await start();
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    const transaction = await submitAsStranger(here, paid);
    expect(await settle(facilitator, paid, reservation)).toMatchObject({
      success: true,
      transaction,
    });
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
  });

  it.each([
    ["before it is sent", 0n],
    ["after it had failed", 1_000n],
  ])(
    "waits for as many blocks on top of a stranger's transaction as on top of its own, %s",
    async (_, missing) => {
      const here = await begin();
      const { devnet, start, pay, balanceOf } = here;
      const { buyer, deployer } = devnet.accounts;
      let searches = 0;
      let passedMs = 0;
      const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
        const answer = await ask();
        if (method === "eth_getLogs" && JSON.stringify(answer).includes("blockNumber"))
          searches += 1;
        return answer;
      });
      try {
        const facilitator = await start({
          network: { rpcUrls: [proxy.url], blockTimeSeconds: 1, serveAfter: 3 },
          times: { sweepMs: 100 },
          clock: { ...systemClock, now: () => systemClock.now() + passedMs },
        });
        const events = listen(facilitator);
        const paid = await pay();
        const reservation = await reserve(facilitator, paid);
        // It is tried again before it is sent.
        passedMs += 2_000;
        let settled: ReturnType<typeof settle> | undefined;
        if (missing > 0n) {
          await devnet.client.writeContract({
            account: buyer,
            address: devnet.token,
            abi: testUsdt0.abi,
            functionName: "transfer",
            args: [deployer.address, await balanceOf(buyer.address)],
          });
          expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
          await devnet.mint({ to: buyer.address, amount: missing });
          await submitAsStranger(here, paid);
        } else {
          await submitAsStranger(here, paid);
          settled = settle(facilitator, paid, reservation);
        }
        await vi.waitFor(() => expect(searches).toBeGreaterThan(2), 10_000);
        expect(events).not.toContain("settle_completed");
        await devnet.mine(3);
        await vi.waitFor(() => expect(events).toContain("settle_completed"), 10_000);
        if (settled) expect(await settled).toMatchObject({ success: true });
        await facilitator.close();
      } finally {
        await proxy.close();
      }
    },
  );

  it("waits with one that a stranger may have submitted while no node tells logs, and not with its neighbours", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    let isMute = true;
    let passedMs = 0;
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) =>
      isMute && method === "eth_getLogs"
        ? { error: { code: -32005, message: "query returned too much" } }
        : ask(),
    );
    try {
      const facilitator = await start({
        network: { rpcUrls: [proxy.url], blockTimeSeconds: 1 },
        times: { sweepMs: 100 },
        clock: { ...systemClock, now: () => systemClock.now() + passedMs },
      });
      const payments = [await pay(), await pay()] as const;
      const held = [
        await reserve(facilitator, payments[0]),
        await reserve(facilitator, payments[1]),
      ] as const;
      const transaction = await submitAsStranger(here, payments[0]);
      // Both are tried again before they are sent.
      passedMs += 2_000;
      const first = settle(facilitator, payments[0], held[0]);
      expect(await settle(facilitator, payments[1], held[1])).toMatchObject({ success: true });
      isMute = false;
      expect(await first).toMatchObject({ success: true, transaction });
      expect(await balanceOf(devnet.accounts.seller.address)).toBe(2_000n);
      await facilitator.close();
    } finally {
      await proxy.close();
    }
  });

  it("tells what became of a transaction's other payments while no node tells logs", async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    let isMute = true;
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) =>
      isMute && method === "eth_getLogs"
        ? { error: { code: -32005, message: "query returned too much" } }
        : ask(),
    );
    try {
      const facilitator = await start({
        network: { rpcUrls: [proxy.url], blockTimeSeconds: 1 },
        // Nothing is tried again: what a stranger does before the transaction is mined comes to light in it.
        clock: { ...systemClock, now: () => 0 },
      });
      const payments = [await pay(), await pay()] as const;
      const held = [
        await reserve(facilitator, payments[0]),
        await reserve(facilitator, payments[1]),
      ] as const;
      const transaction = await submitAsStranger(here, payments[0]);
      const first = settle(facilitator, payments[0], held[0]);
      const second = settle(facilitator, payments[1], held[1]);
      expect(await second).toMatchObject({ success: true });
      isMute = false;
      expect(await first).toMatchObject({ success: true, transaction });
      await facilitator.close();
    } finally {
      await proxy.close();
    }
  });

  it("finds out that one was executed which no node told of until its time was over", async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    let isMute = true;
    let passedMs = 0;
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) =>
      isMute && method === "eth_getLogs"
        ? { error: { code: -32005, message: "query returned too much" } }
        : ask(),
    );
    try {
      const facilitator = await start({
        network: { rpcUrls: [proxy.url], blockTimeSeconds: 1 },
        times: { sweepMs: 100 },
        clock: { ...systemClock, now: () => systemClock.now() + passedMs },
        now: () => Date.now() + passedMs,
      });
      const events = listen(facilitator);
      const paid = await pay();
      const reservation = await reserve(facilitator, paid);
      await submitAsStranger(here, paid);
      passedMs += 2_000;
      const settled = settle(facilitator, paid, reservation);
      await vi.waitFor(async () => {
        expect((await facilitator.payments.list({ state: "queued" })).payments).toHaveLength(1);
      });
      passedMs += 300_000;
      expect(await settled).toMatchObject({
        success: false,
        errorReason: "invalid_exact_evm_payload_authorization_valid_before",
      });
      isMute = false;
      await vi.waitFor(() => expect(events).toContain("settle_completed"), 10_000);
      await facilitator.close();
    } finally {
      await proxy.close();
    }
  });

  it("does not honour a cancelled authorization", async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    const facilitator = await start();
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    await cancel(here, devnet.accounts.buyer, paid);
    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
  });

  it("confirms a failed payment that a stranger executes later", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const facilitator = await start();
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    const { buyer, deployer } = devnet.accounts;
    const holdings = await balanceOf(buyer.address);
    await devnet.client.writeContract({
      account: buyer,
      address: devnet.token,
      abi: testUsdt0.abi,
      functionName: "transfer",
      args: [deployer.address, holdings],
    });
    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
    await facilitator.release(reservation, "refused");
    await devnet.mint({ to: buyer.address, amount: 1_000n });
    // Its payer brings it again, and the handler fails: it is watched as before.
    await facilitator.release(await reserve(facilitator, paid), "handler_failed");
    const events = listen(facilitator);
    await submitAsStranger(here, paid);
    await vi.waitFor(() => expect(events).toContain("settle_completed"), 10_000);
    const request = { id: idOf(paid), fingerprint: "GET /a" };
    expect(await facilitator.lookUp(request)).toEqual({ state: "resumable" });
  });

  it("finds out that a failed payment was executed though the node has the receipt later than the log", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const { buyer, deployer } = devnet.accounts;
    let withheld = 0;
    let isLate = false;
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
      if (!isLate || method !== "eth_getTransactionReceipt") return ask();
      isLate = false;
      withheld += 1;
      return { result: null };
    });
    try {
      const facilitator = await start({ network: { rpcUrls: [proxy.url], blockTimeSeconds: 1 } });
      const paid = await pay();
      const reservation = await reserve(facilitator, paid);
      await devnet.client.writeContract({
        account: buyer,
        address: devnet.token,
        abi: testUsdt0.abi,
        functionName: "transfer",
        args: [deployer.address, await balanceOf(buyer.address)],
      });
      expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
      await devnet.mint({ to: buyer.address, amount: 1_000n });
      const events = listen(facilitator);
      isLate = true;
      await submitAsStranger(here, paid);
      await vi.waitFor(() => expect(withheld).toBe(1), 10_000);
      await vi.waitFor(() => expect(events).toContain("settle_completed"), 10_000);
      await facilitator.close();
    } finally {
      await proxy.close();
    }
  });

  it("watches a cancelled payment until the cancellation is final", async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    let searches = 0;
    let passedMs = 0;
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
      const answer = await ask();
      if (method === "eth_getLogs") searches += 1;
      return answer;
    });
    try {
      const facilitator = await start({
        network: { rpcUrls: [proxy.url], blockTimeSeconds: 1, finalAfter: 3 },
        times: { sweepMs: 100 },
        clock: { ...systemClock, now: () => systemClock.now() + passedMs },
      });
      const paid = await pay();
      const reservation = await reserve(facilitator, paid);
      await devnet.mine(2);
      // It is tried again before it is sent.
      passedMs += 2_000;
      await cancel(here, devnet.accounts.buyer, paid);
      expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
      const before = searches;
      await vi.waitFor(() => expect(searches).toBeGreaterThan(before + 1), 10_000);
      const events = listen(facilitator);
      await devnet.reorg({ depth: 1 });
      await submitAsStranger(here, paid);
      await vi.waitFor(() => expect(events).toContain("settle_completed"), 10_000);

      const other = await pay();
      const held = await reserve(facilitator, other);
      await cancel(here, devnet.accounts.buyer, other);
      expect(await settle(facilitator, other, held)).toMatchObject({ success: false });
      await devnet.mine(4);
      await vi.waitFor(async () => {
        const { payments } = await facilitator.payments.list({ state: "failed" });
        expect(payments[0]?.closedAt).toBeDefined();
      }, 10_000);
      await facilitator.close();
    } finally {
      await proxy.close();
    }
  });

  it("watches a failed payment behind five hundred that stay valid for long", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const { buyer, deployer } = devnet.accounts;
    const facilitator = await start();
    const authorization = { validBefore: BigInt(Math.floor(Date.now() / 1000) + 80_000) };
    const endless = await Promise.all(
      Array.from({ length: 500 }, () => pay({ amount: 1n, authorization })),
    );
    const held = await Promise.all(endless.map((paid) => reserve(facilitator, paid)));
    const last = await pay();
    const lastHeld = await reserve(facilitator, last);
    await devnet.client.writeContract({
      account: buyer,
      address: devnet.token,
      abi: testUsdt0.abi,
      functionName: "transfer",
      args: [deployer.address, await balanceOf(buyer.address)],
    });
    await Promise.all(endless.map((paid, index) => settle(facilitator, paid, held[index])));
    expect(await settle(facilitator, last, lastHeld)).toMatchObject({ success: false });
    const events = listen(facilitator);
    await devnet.mint({ to: buyer.address, amount: 1_000n });
    await submitAsStranger(here, last);
    await vi.waitFor(() => expect(events).toContain("settle_completed"), 10_000);
  });

  it.each(["emitsNoTransfer", "transfersLess", "emitsOtherSender", "burnsGas", "reverts"] as const)(
    "does not count a token that %s as paid",
    async (behaviour) => {
      const { devnet, start, pay } = await begin();
      const facilitator = await start();
      const { buyer } = devnet.accounts;
      const token = await devnet.deployMisbehavingToken("honest");
      await devnet.mint({ to: buyer.address, amount: 10_000n, token });
      const paid = await pay({ asset: token });
      const good = await pay();
      const reservations = [await reserve(facilitator, paid), await reserve(facilitator, good)];
      const hash = await devnet.client.writeContract({
        address: token,
        abi: [
          {
            type: "function",
            name: "setBehaviour",
            inputs: [{ type: "uint8" }],
            outputs: [],
            stateMutability: "nonpayable",
          },
        ],
        functionName: "setBehaviour",
        args: [behaviours[behaviour]],
      });
      // Else the transfer may come before it in a block.
      await devnet.client.waitForTransactionReceipt({ hash });
      const settled = await Promise.all([
        settle(facilitator, paid, reservations[0]),
        settle(facilitator, good, reservations[1]),
      ]);
      expect(settled.map(({ success }) => success)).toEqual([false, true]);
    },
  );
});
