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

/** A seller whose first looks at the reservation find this, and its buyer without a key. */
async function openShop(looks: (Error | false)[]) {
  const { network, token, rpcUrl, accounts } = devnet;
  const { relayer, seller } = accounts;
  const own = createFacilitator({
    networks: [{ network, rpcUrls: [rpcUrl], relayer }],
    ledger: "sqlite::memory:",
  });
  onTestFinished(() => own.close());
  const facilitator: typeof own = {
    ...own,
    async isHeld(reservation) {
      const found = looks.shift();
      if (found instanceof Error) throw found;
      if (found === false) return false;
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
  return {
    async ask(further: Record<string, string> = {}) {
      const response = await fetch(`${url}/paid`, { headers: { ...headers, ...further } });
      return { status: response.status, body: await response.text() };
    },
    errors,
    runs: () => runs,
  };
}

const pending = { status: 503, body: expect.stringContaining("settlement_pending") };

it("a settled answer that a fault of the ledger withholds goes to the same payment's next request", async () => {
  const fault = new Error("The ledger cannot be read");
  // At the answer of the handler, and at the kept one.
  const { ask, errors, runs } = await openShop([fault, fault]);
  expect(await ask()).toEqual(pending);
  expect(await ask()).toEqual(pending);
  expect(await ask()).toEqual({ status: 200, body: "sold" });
  expect(await ask()).toMatchObject({ status: 402 });
  expect(runs()).toBe(1);
  expect(errors).toEqual([fault, fault]);
});

it("a payment without a key has one answer, whatever key comes with the request that resumes it", async () => {
  const fault = new Error("The ledger cannot be read");
  const { ask } = await openShop([fault, false]);
  expect(await ask()).toEqual(pending);
  // Another process has taken it up, as far as this one can see.
  expect(await ask({ "Idempotency-Key": "a-key-that-came-later" })).toEqual(pending);
});

it("a payment without a key keeps its answer for its buyer when a stranger resumes it with a key", async () => {
  const fault = new Error("The ledger cannot be read");
  const { ask, runs } = await openShop([fault, fault]);
  expect(await ask()).toEqual(pending);
  expect(await ask({ "Idempotency-Key": "a-key-of-a-stranger" })).toEqual(pending);
  expect(await ask()).toEqual({ status: 200, body: "sold" });
  expect(runs()).toBe(1);
});

it("an answer is withheld from a buyer with a key as well, once the payment is lost: it may be given back", async () => {
  const { ask, runs } = await openShop([false, false]);
  const key = { "Idempotency-Key": "a-key-of-the-buyer" };
  // The answer of the handler, and the kept one.
  expect(await ask(key)).toEqual(pending);
  expect(await ask(key)).toEqual(pending);
  expect(await ask(key)).toEqual({ status: 200, body: "sold" });
  expect(runs()).toBe(1);
});
