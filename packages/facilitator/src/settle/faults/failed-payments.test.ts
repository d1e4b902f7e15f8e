import { systemClock } from "@coinslot/chain";
import { describe, expect, it, vi } from "vitest";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import {
  cancel,
  drain,
  idOf,
  listen,
  reserve,
  settle,
  submitAsStranger,
  useSettlingDevnet,
} from "../../testing/settling-actions.ts";

const begin = useSettlingDevnet();

describe("the watch over failed payments", () => {
  it("confirms a failed payment that another sender executes later", async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    const facilitator = await start();
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    const { buyer } = devnet.accounts;
    await drain(here);
    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
    await facilitator.release(reservation, "refused");
    await devnet.mint({ to: buyer.address, amount: 1_000n });
    // Its payer presents it again, and the handler fails: it is watched as before.
    await facilitator.release(await reserve(facilitator, paid), "handler_failed");
    const events = listen(facilitator);
    await submitAsStranger(here, paid);
    await vi.waitFor(() => expect(events).toContain("settle_completed"), 20_000);
    const request = { id: idOf(paid), fingerprint: "GET /a" };
    expect(await facilitator.lookUp(request)).toEqual({ state: "resumable" });
  });

  it("confirms a failed payment when the node has the log before the receipt", async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    const { buyer } = devnet.accounts;
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
      await drain(here);
      expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
      await devnet.mint({ to: buyer.address, amount: 1_000n });
      const events = listen(facilitator);
      isLate = true;
      await submitAsStranger(here, paid);
      await vi.waitFor(() => expect(withheld).toBe(1), 20_000);
      await vi.waitFor(() => expect(events).toContain("settle_completed"), 20_000);
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
      // It has a new trial before it is sent.
      passedMs += 2_000;
      await cancel(here, devnet.accounts.buyer, paid);
      expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
      const before = searches;
      await devnet.mine(1);
      await vi.waitFor(() => expect(searches).toBeGreaterThan(before), 20_000);
      const events = listen(facilitator);
      await devnet.reorg({ depth: 2 });
      await submitAsStranger(here, paid);
      await vi.waitFor(() => expect(events).toContain("settle_completed"), 20_000);

      const other = await pay();
      const held = await reserve(facilitator, other);
      await cancel(here, devnet.accounts.buyer, other);
      expect(await settle(facilitator, other, held)).toMatchObject({ success: false });
      await devnet.mine(4);
      await vi.waitFor(async () => {
        const { payments } = await facilitator.payments.list({ state: "failed" });
        expect(payments[0]?.closedAt).toBeDefined();
      }, 20_000);
      await facilitator.close();
    } finally {
      await proxy.close();
    }
  });

  it("finds a failed payment behind five hundred that stay valid for long", async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    const { buyer } = devnet.accounts;
    const facilitator = await start({ releaseLimit: { count: 1_000, windowSeconds: 60 } });
    const authorization = { validBefore: BigInt(Math.floor(Date.now() / 1000) + 80_000) };
    const endless = await Promise.all(
      Array.from({ length: 500 }, () => pay({ amount: 1n, authorization })),
    );
    const held = await Promise.all(endless.map((paid) => reserve(facilitator, paid)));
    const last = await pay();
    const lastHeld = await reserve(facilitator, last);
    await drain(here);
    await Promise.all(endless.map((paid, index) => settle(facilitator, paid, held[index])));
    expect(await settle(facilitator, last, lastHeld)).toMatchObject({ success: false });
    const events = listen(facilitator);
    await devnet.mint({ to: buyer.address, amount: 1_000n });
    await submitAsStranger(here, last);
    await vi.waitFor(() => expect(events).toContain("settle_completed"), 20_000);
  });
});
