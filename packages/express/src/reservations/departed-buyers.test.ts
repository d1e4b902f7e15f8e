import { get } from "node:http";
import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { createFacilitator } from "@coinslot/facilitator";
import express from "express";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { paymentMiddleware } from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet();
});
afterAll(() => devnet.stop());

/** A place where calls wait until it opens. */
function createBarrier() {
  let waiting = 0;
  let open = () => {};
  const isOpen = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    waiting: () => waiting,
    open: () => open(),
    async pass() {
      waiting += 1;
      await isOpen;
    },
  };
}

/** A shop with its own facilitator, whose calls it counts, and holds where a test says so. */
async function openShop(barriers: { lookUp?: Barrier; verify?: Barrier }) {
  const { network, token, rpcUrl, accounts } = devnet;
  const { relayer, seller } = accounts;
  const own = createFacilitator({
    networks: [{ network, rpcUrls: [rpcUrl], relayer }],
    ledger: "sqlite::memory:",
  });
  onTestFinished(() => own.close());
  const calls = { verify: 0, reserve: 0, release: 0 };
  const facilitator: typeof own = {
    ...own,
    async lookUp(...parameters) {
      await barriers.lookUp?.pass();
      return own.lookUp(...parameters);
    },
    async verify(...parameters) {
      calls.verify += 1;
      const verified = await own.verify(...parameters);
      await barriers.verify?.pass();
      return verified;
    },
    reserve(...parameters) {
      calls.reserve += 1;
      return own.reserve(...parameters);
    },
    release(...parameters) {
      calls.release += 1;
      return own.release(...parameters);
    },
  };
  const price = {
    amount: "1000",
    asset: token,
    extra: { name: "USDT0", version: "1", decimals: 6 },
  };
  const accepts = { scheme: "exact", network, payTo: seller.address, price } as const;
  const errors: unknown[] = [];
  const gate = paymentMiddleware({ "GET /paid": { accepts } }, facilitator, {
    onError: (error) => errors.push(error),
  });
  const app = express();
  let closed = 0;
  app.use((_request, response, next) => {
    response.once("close", () => {
      closed += 1;
    });
    next();
  });
  app.use(gate);
  app.get("/paid", (_request, response) => void response.send("sold"));
  await gate.ready();
  const { url, close } = await listen(app);
  onTestFinished(close);

  return {
    calls,
    errors,
    /** Sends payments of a wallet each, waits until the barrier holds them, and hangs up. */
    async sendAndLeave(count: number, barrier: Barrier) {
      const requests = [];
      for (let index = 0; index < count; index += 1) {
        const buyer = createBuyer();
        await devnet.mint({ to: buyer.account.address, amount: 1_000n });
        const { headers } = await buyer.payFor(`${url}/paid`);
        requests.push(get(`${url}/paid`, { headers }).on("error", () => undefined));
      }
      await expect.poll(barrier.waiting).toBe(count);
      const before = closed;
      for (const request of requests) request.destroy();
      await expect.poll(() => closed).toBe(before + count);
    },
    async buy() {
      const buyer = createBuyer();
      await devnet.mint({ to: buyer.account.address, amount: 1_000n });
      const { headers } = await buyer.payFor(`${url}/paid`);
      return (await fetch(`${url}/paid`, { headers })).status;
    },
  };
}

type Barrier = ReturnType<typeof createBarrier>;

describe("a buyer who hangs up", () => {
  it("a buyer who hangs up before its verification costs none, and is no fault", async () => {
    const barrier = createBarrier();
    const shop = await openShop({ lookUp: barrier });
    await shop.sendAndLeave(10, barrier);
    barrier.open();
    expect(await shop.buy()).toBe(200);
    expect(shop.calls).toEqual({ verify: 1, reserve: 1, release: 0 });
    expect(shop.errors).toEqual([]);
  });

  it("during its verification costs no reservation", async () => {
    const barrier = createBarrier();
    const shop = await openShop({ verify: barrier });
    await shop.sendAndLeave(10, barrier);
    barrier.open();
    expect(await shop.buy()).toBe(200);
    expect(shop.calls).toEqual({ verify: 11, reserve: 1, release: 0 });
    expect(shop.errors).toEqual([]);
  });
});
