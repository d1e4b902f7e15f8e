import { createPayingFetch, receiptOf } from "@coinslot/client";
import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { createReferenceFacilitator } from "@coinslot/devnet/reference-facilitator";
import { createFacilitatorClient, facilitatorRouter } from "@coinslot/express";
import type { x402Facilitator } from "@x402/core/facilitator";
import express from "express";
import supertest from "supertest";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { balanceOf } from "../support/balance.ts";
import { createReferenceFetch } from "../support/reference.ts";
import { createTestFacilitator, priceOfWeather, startSeller } from "../support/seller.ts";

let devnet: Devnet;
let reference: x402Facilitator;

beforeAll(async () => {
  devnet = await startDevnet({ chainId: 9745 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
  reference = createReferenceFacilitator(devnet, devnet.accounts.deployer);
});

afterAll(async () => {
  await devnet?.stop();
});

describe("our middleware with the reference's facilitator in the same process", () => {
  it("sells, and offers only the version that this facilitator lists", async () => {
    const seller = await startSeller({ devnet, facilitator: reference });
    try {
      const unpaid = await supertest(seller.url).get("/weather").expect(402);
      expect(unpaid.get("PAYMENT-REQUIRED")).toBeDefined();
      expect(unpaid.body).toMatchObject({ accepts: [] });

      const before = await balanceOf(devnet, devnet.accounts.seller.address);
      const pay = createReferenceFetch(devnet, devnet.accounts.buyer);
      expect((await pay(`${seller.url}/weather`)).status).toBe(200);
      const paid = (await balanceOf(devnet, devnet.accounts.seller.address)) - before;
      expect(paid).toBe(priceOfWeather);
    } finally {
      await seller.close();
    }
  });
});

describe("our middleware with our facilitator over HTTP", () => {
  it("sells to both clients", async () => {
    const facilitator = createTestFacilitator(devnet);
    await facilitator.ready();
    const hosted = await listen(express().use("/x402", facilitatorRouter(facilitator)));
    const remote = createFacilitatorClient({ url: `${hosted.url}/x402` });
    const seller = await startSeller({ devnet, facilitator: remote });
    try {
      const payers = [
        createReferenceFetch(devnet, devnet.accounts.buyer),
        createPayingFetch({
          account: devnet.accounts.buyer,
          rpcUrls: { [devnet.network]: devnet.rpcUrl },
        }),
      ];
      for (const pay of payers) {
        const response = await pay(`${seller.url}/weather`);
        expect(response.status).toBe(200);
      }
      expect(seller.runs()).toBe(2);
    } finally {
      await seller.close();
      await hosted.close();
      await facilitator.close();
    }
  });
});

describe("our client, our middleware and our facilitator", () => {
  it("pays in version 1 where a seller answers in the protocol's first form", async () => {
    const facilitator = createTestFacilitator(devnet);
    const seller = await startSeller({ devnet, facilitator });
    const versionOneOnly = await listen(async (request, response) => {
      // An old seller: the offer is in the body only, and X-PAYMENT is the only header it reads.
      const payment = request.headers["x-payment"];
      const answer = await fetch(`${seller.url}${request.url}`, {
        headers: typeof payment === "string" ? { "X-PAYMENT": payment } : {},
      });
      const receipt = answer.headers.get("X-PAYMENT-RESPONSE");
      response.writeHead(answer.status, {
        "Content-Type": "application/json",
        ...(receipt === null ? {} : { "X-PAYMENT-RESPONSE": receipt }),
      });
      const body = await answer.text();
      response.end(body.replaceAll(seller.url, `http://${request.headers.host}`));
    });
    try {
      const pay = createPayingFetch({
        account: devnet.accounts.buyer,
        rpcUrls: { [devnet.network]: devnet.rpcUrl },
      });
      const response = await pay(`${versionOneOnly.url}/weather`);
      expect(response.status).toBe(200);
      expect(receiptOf(response)).toMatchObject({ success: true, network: devnet.network });
    } finally {
      await versionOneOnly.close();
      await seller.close();
      await facilitator.close();
    }
  });
});
