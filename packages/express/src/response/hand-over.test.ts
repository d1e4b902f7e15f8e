import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { createFacilitator } from "@coinslot/facilitator";
import express from "express";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { paymentMiddleware } from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet();
});
afterAll(() => devnet.stop());

it("a settled answer that a fault of the ledger withholds goes to the same payment's next request", async () => {
  const { network, token, rpcUrl, accounts } = devnet;
  const { relayer, seller } = accounts;
  const own = createFacilitator({
    networks: [{ network, rpcUrls: [rpcUrl], relayer }],
    ledger: "sqlite::memory:",
  });
  onTestFinished(() => own.close());
  const fault = new Error("The ledger cannot be read");
  // The first two looks: at the answer of the handler, and at the kept one.
  const faults = [fault, fault];
  const facilitator: typeof own = {
    ...own,
    async isHeld(reservation) {
      const thrown = faults.pop();
      if (thrown) throw thrown;
      return (await own.isHeld?.(reservation)) ?? true;
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
  let runs = 0;
  const app = express();
  app.use(gate);
  app.get("/paid", (_request, response) => {
    runs += 1;
    response.send("sold");
  });
  await gate.ready();
  const { url, close } = await listen(app);
  onTestFinished(close);
  const buyer = createBuyer();
  await devnet.mint({ to: buyer.account.address, amount: 1_000n });
  const { headers } = await buyer.payFor(`${url}/paid`);
  const ask = async () => {
    const response = await fetch(`${url}/paid`, { headers });
    return { status: response.status, body: await response.text() };
  };
  const pending = { status: 503, body: expect.stringContaining("settlement_pending") };
  expect(await ask()).toEqual(pending);
  expect(await ask()).toEqual(pending);
  expect(await ask()).toEqual({ status: 200, body: "sold" });
  expect(await ask()).toMatchObject({ status: 402 });
  expect(runs).toBe(1);
  expect(errors).toEqual([fault, fault]);
});
