import { createPayingFetch, paymentOf } from "@coinslot/client";
import { listen, startDevnet } from "@coinslot/devnet";
import { paymentMiddleware } from "@coinslot/express";
import express from "express";
import { expect, it, onTestFinished } from "vitest";
import { balanceOf } from "../support/balance.ts";
import { createTestFacilitator } from "../support/seller.ts";

it("a payment for a handler above its route's time limit ends uncharged, after one attempt", async () => {
  const devnet = await startDevnet({ chainId: 9745 });
  onTestFinished(() => devnet.stop());
  const { buyer, seller } = devnet.accounts;
  await devnet.mint({ to: buyer.address, amount: 1_000_000n });
  const facilitator = createTestFacilitator(devnet);
  onTestFinished(() => facilitator.close());
  const { network } = devnet;
  const accepts = { scheme: "exact", network, price: "$0.001", payTo: seller.address } as const;
  const gate = paymentMiddleware(
    { "/slow": { accepts, handlerTimeoutSeconds: 0.05 } },
    facilitator,
  );
  const app = express();
  let runs = 0;
  app.use(gate);
  app.get("/slow", () => {
    runs += 1;
  });
  await gate.ready();
  const shop = await listen(app);
  onTestFinished(shop.close);

  const states: string[] = [];
  const pay = createPayingFetch({
    account: buyer,
    rpcUrls: { [network]: devnet.rpcUrl },
    onPayment: ({ state }) => states.push(state),
  });
  const answer = await pay(`${shop.url}/slow`);

  expect(answer.status).toBe(504);
  expect(paymentOf(answer)).toMatchObject({ state: "rejected", reason: "handler_timeout" });
  expect(states).toEqual(["booked", "signed", "sent", "rejected"]);
  expect(runs).toBe(1);
  expect(await balanceOf(devnet, seller.address)).toBe(0n);
});
