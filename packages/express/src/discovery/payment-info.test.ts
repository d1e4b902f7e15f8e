import { knownAsset, plasma, plasmaUsdt0 } from "@coinslot/protocol";
import supertest from "supertest";
import { describe, expect, it, vi } from "vitest";
import { paymentMiddleware } from "../index.ts";
import { appOf, base, documentOf, mppSecret, usdc } from "../testing/discovered-routes.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { option, payTo } from "../testing/shop.ts";

const euro = { amount: "5000", asset: payTo, extra: { name: "Euro", version: "1" } } as const;

describe("x-payment-info", () => {
  it("states a fixed price in both dialects, for every way to pay", async () => {
    const { paths } = await documentOf({
      "GET /weather": { accepts: [usdc(), option({ price: "$0.01" })] },
    });
    const asset = knownAsset(base)?.address;
    expect(paths["/weather"].get["x-payment-info"]).toEqual({
      price: { mode: "fixed", currency: "USD", amount: "0.01" },
      protocols: [
        {
          x402: {
            versions: [1, 2],
            accepts: [
              { scheme: "exact", network: base, amount: "10000", asset },
              {
                scheme: "exact",
                network: plasma,
                amount: "10000",
                asset: plasmaUsdt0.address,
              },
            ],
          },
        },
        { mpp: { method: "evm", intent: "charge", currency: asset } },
      ],
      offers: [
        {
          method: "evm",
          intent: "charge",
          amount: "10000",
          currency: asset,
          methodDetails: { chainId: 8453 },
        },
      ],
    });
    expect(paths["/weather"].get.responses).toHaveProperty("402");
  });

  it("states the offers that the 402 makes: none by MPP where a route has them off", async () => {
    const { paths } = await documentOf({
      "GET /off": { accepts: usdc(), mpp: false },
      "GET /on": { accepts: option(), mpp: true },
    });
    const info = (path: string) => paths[path].get["x-payment-info"];
    expect(info("/off").protocols.map(Object.keys)).toEqual([["x402"]]);
    expect(info("/off")).not.toHaveProperty("offers");
    expect(info("/on").offers).toMatchObject([
      { amount: "1000", methodDetails: { chainId: 9745 } },
    ]);
  });

  it("leaves MPP out where the facilitator settles version 1 alone", async () => {
    const gate = paymentMiddleware(
      { "GET /a": { accepts: usdc() } },
      createPaperFacilitator({ versions: [1], networks: [base] }),
      { mpp: { secrets: [mppSecret] } },
    );
    await gate.ready();
    const { body } = await supertest(appOf(gate)).get("/openapi.json").expect(200);
    expect(body.paths["/a"].get["x-payment-info"].protocols).toEqual([
      { x402: expect.objectContaining({ versions: [1] }) },
    ]);
  });

  it("asks no function: such a price is null, and dynamic within the seller's bounds", async () => {
    const price = vi.fn(() => "$0.02" as const);
    const recipient = vi.fn(() => payTo);
    const { paths } = await documentOf({
      "GET /free": { accepts: { ...usdc(), price, payTo: recipient } },
      "GET /bound": {
        accepts: { ...usdc(), price },
        discovery: { price: { min: "$0.010", max: 2.5 } },
      },
      "GET /capped": { accepts: { ...usdc(), price }, discovery: { price: { max: "1" } } },
    });
    const info = (path: string) => paths[path].get["x-payment-info"];
    expect(info("/free").price).toEqual({ mode: "dynamic" });
    expect(info("/free").offers).toEqual([
      { method: "evm", intent: "charge", amount: null, methodDetails: { chainId: 8453 } },
    ]);
    expect(info("/free").protocols[0].x402.accepts).toEqual([{ scheme: "exact", network: base }]);
    expect(info("/bound").price).toEqual({
      mode: "dynamic",
      currency: "USD",
      min: "0.01",
      max: "2.5",
    });
    expect(info("/capped").price).toEqual({ mode: "dynamic", currency: "USD", max: "1" });
    expect(price).not.toHaveBeenCalled();
    expect(recipient).not.toHaveBeenCalled();
  });

  it("calls no unknown token a dollar, and gives a range where ways to pay differ", async () => {
    const { paths } = await documentOf({
      "GET /euro": { accepts: option({ price: euro }) },
      "GET /range": { accepts: [usdc(), option({ price: "$0.03" }), option({ price: "$0.02" })] },
    });
    const info = (path: string) => paths[path].get["x-payment-info"];
    expect(info("/euro").price).toEqual({ mode: "dynamic" });
    expect(info("/range").price).toEqual({
      mode: "dynamic",
      currency: "USD",
      min: "0.01",
      max: "0.03",
    });
  });
});
