import { createPayingFetch, receiptOf } from "@coinslot/client";
import { type Devnet, type Listening, listen, startDevnet } from "@coinslot/devnet";
import { createReferenceFacilitator } from "@coinslot/devnet/reference-facilitator";
import { facilitatorRouter } from "@coinslot/express";
import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { supportedSchema } from "@coinslot/protocol";
import { HTTPFacilitatorClient } from "@x402/core/server";
import express from "express";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { balanceOf } from "../support/balance.ts";
import { createReferenceFetch, startReferenceSeller } from "../support/reference.ts";
import { createTestFacilitator, priceOfWeather } from "../support/seller.ts";

let devnet: Devnet;
let facilitator: CoinslotFacilitator;
let overHttp: Listening;

beforeAll(async () => {
  devnet = await startDevnet({ chainId: 9745 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
  facilitator = createTestFacilitator(devnet);
  await facilitator.ready();
  overHttp = await listen(express().use(facilitatorRouter(facilitator)));
});

afterAll(async () => {
  await overHttp?.close();
  await facilitator?.close();
  await devnet?.stop();
});

async function buysOnce(pay: typeof fetch, seller: Listening): Promise<Response> {
  try {
    const before = await balanceOf(devnet, devnet.accounts.seller.address);
    const response = await pay(`${seller.url}/weather`);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ forecast: "sun" });
    expect((await balanceOf(devnet, devnet.accounts.seller.address)) - before).toBe(priceOfWeather);
    return response;
  } finally {
    await seller.close();
  }
}

describe("@x402/express", () => {
  it("sells with our facilitator in its own process", async () => {
    const seller = await startReferenceSeller(devnet, facilitator);
    await buysOnce(createReferenceFetch(devnet, devnet.accounts.buyer), seller);
  });

  it("sells with our facilitator over HTTP, through its own HTTPFacilitatorClient", async () => {
    const seller = await startReferenceSeller(
      devnet,
      new HTTPFacilitatorClient({ url: overHttp.url }),
    );
    await buysOnce(createReferenceFetch(devnet, devnet.accounts.buyer), seller);
  });

  it("sells to our client, without our packages on the seller's side", async () => {
    const reference = createReferenceFacilitator(devnet, devnet.accounts.relayer);
    const seller = await startReferenceSeller(devnet, {
      verify: (payload, requirements) => reference.verify(payload, requirements),
      settle: (payload, requirements) => reference.settle(payload, requirements),
      getSupported: async () => supportedSchema.parse(reference.getSupported()),
    });
    const pay = createPayingFetch({
      account: devnet.accounts.buyer,
      rpcUrls: { [devnet.network]: devnet.rpcUrl },
    });
    const response = await buysOnce(pay, seller);
    expect(receiptOf(response)).toMatchObject({ success: true, network: devnet.network });
  });
});
