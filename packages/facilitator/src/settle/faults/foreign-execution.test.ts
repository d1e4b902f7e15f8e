import { systemClock } from "@coinslot/chain";
import { describe, expect, it, vi } from "vitest";
import { startNodeProxy, startNodeWithoutLogs } from "../../testing/node-proxy.ts";
import {
  drain,
  listen,
  reserve,
  settle,
  submitAsStranger,
  submitTogether,
  useSettlingDevnet,
} from "../../testing/settling-actions.ts";

const begin = useSettlingDevnet();

describe("settling an authorization that another sender may have executed", () => {
  it("honours an authorization that another sender submitted first", async () => {
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

  it("serves no two payments for one Transfer of a transaction that uses both up", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const { buyer, seller } = devnet.accounts;
    const facilitator = await start();
    const payments = [await pay(), await pay()] as const;
    const held = [
      await reserve(facilitator, payments[0]),
      await reserve(facilitator, payments[1]),
    ] as const;
    const toSelf = ({ authorization: { nonce } }: (typeof payments)[number]) =>
      pay({ payTo: buyer.address, amount: 1n, authorization: { nonce } });
    const real = await pay();
    await submitTogether(here, [await toSelf(payments[0]), await toSelf(payments[1]), real]);
    // One after the other: each has a search of its own.
    for (const [index, payment] of payments.entries()) {
      const settled = await settle(facilitator, payment, held[index]);
      expect(settled).toMatchObject({ success: false });
    }
    expect(await balanceOf(seller.address)).toBe(1_000n);
  });

  it.each([
    ["before it is sent", 0n],
    ["after it had failed", 1_000n],
  ])(
    "requires the same depth on another sender's transaction as on its own, %s",
    async (_, missing) => {
      const here = await begin();
      const { devnet, start, pay } = here;
      const { buyer } = devnet.accounts;
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
          times: { sweepMs: 100, settlingMs: 100, idleMs: 500 },
          clock: { ...systemClock, now: () => systemClock.now() + passedMs },
        });
        const events = listen(facilitator);
        const paid = await pay();
        const reservation = await reserve(facilitator, paid);
        // It has a new trial before it is sent.
        passedMs += 2_000;
        let settled: ReturnType<typeof settle> | undefined;
        if (missing > 0n) {
          await drain(here);
          expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
          await devnet.mint({ to: buyer.address, amount: missing });
          await submitAsStranger(here, paid);
        } else {
          await submitAsStranger(here, paid);
          settled = settle(facilitator, paid, reservation);
        }
        // A head is searched once.
        await vi.waitFor(() => expect(searches).toBeGreaterThan(0), 20_000);
        expect(events).not.toContain("settle_completed");
        await devnet.mine(3);
        await vi.waitFor(() => expect(events).toContain("settle_completed"), 20_000);
        if (settled) expect(await settled).toMatchObject({ success: true });
        await facilitator.close();
      } finally {
        await proxy.close();
      }
    },
  );

  it("waits for logs for an authorization that another sender may have used, without delaying its neighbours", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    let passedMs = 0;
    const proxy = await startNodeWithoutLogs(devnet.rpcUrl);
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
      // Both have a new trial before they are sent.
      passedMs += 2_000;
      const first = settle(facilitator, payments[0], held[0]);
      expect(await settle(facilitator, payments[1], held[1])).toMatchObject({ success: true });
      proxy.tellLogs();
      expect(await first).toMatchObject({ success: true, transaction });
      expect(await balanceOf(devnet.accounts.seller.address)).toBe(2_000n);
      await facilitator.close();
    } finally {
      await proxy.close();
    }
  });

  it("concludes a transaction's other payments while nodes return no logs", async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    const proxy = await startNodeWithoutLogs(devnet.rpcUrl);
    try {
      const facilitator = await start({
        network: { rpcUrls: [proxy.url], blockTimeSeconds: 1 },
        // Trials are off: only the mined transaction reveals another sender's earlier execution.
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
      proxy.tellLogs();
      expect(await first).toMatchObject({ success: true, transaction });
      await facilitator.close();
    } finally {
      await proxy.close();
    }
  });

  it("answers a foreign execution by its logs where nodes refuse them until the authorization expired", async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    let passedMs = 0;
    const proxy = await startNodeWithoutLogs(devnet.rpcUrl);
    try {
      const facilitator = await start({
        network: { rpcUrls: [proxy.url], blockTimeSeconds: 1 },
        times: { sweepMs: 100 },
        clock: { ...systemClock, now: () => systemClock.now() + passedMs },
        now: () => Date.now() + passedMs,
      });
      const paid = await pay();
      const reservation = await reserve(facilitator, paid);
      const transaction = await submitAsStranger(here, paid);
      passedMs += 2_000;
      const settled = settle(facilitator, paid, reservation);
      await vi.waitFor(async () => {
        expect((await facilitator.payments.list({ state: "queued" })).payments).toHaveLength(1);
      }, 20_000);
      passedMs += 300_000;
      await devnet.client.increaseTime({ seconds: 400 });
      await devnet.mine();
      proxy.tellLogs();
      expect(await settled).toMatchObject({ success: true, transaction });
      await facilitator.close();
    } finally {
      await proxy.close();
    }
  });
});
