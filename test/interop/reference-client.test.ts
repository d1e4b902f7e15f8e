import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { paymentMiddleware } from "@coinslot/express";
import { type CoinslotFacilitator, createFacilitator } from "@coinslot/facilitator";
import { decodeReceipt, paymentIdentifierExtension } from "@coinslot/protocol";
import { decodePaymentRequiredHeader } from "@x402/core/http";
import {
  appendPaymentIdentifierToExtensions,
  declarePaymentIdentifierExtension,
  PAYMENT_IDENTIFIER,
} from "@x402/extensions/payment-identifier";
import { decodePaymentResponseHeader, wrapFetchWithPayment } from "@x402/fetch";
import axios from "axios";
import express from "express";
import supertest from "supertest";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withPaymentInterceptor } from "x402-axios";
import { wrapFetchWithPayment as wrapFetchWithPaymentV1 } from "x402-fetch";
import { balanceOf } from "../support/balance.ts";
import { createLegacyWallet } from "../support/legacy.ts";
import { createReferenceClient, createReferenceFetch } from "../support/reference.ts";
import {
  createTestFacilitator,
  openWeatherShop,
  priceOfWeather,
  type Seller,
  startSeller,
  weatherPrice,
} from "../support/seller.ts";

describe("@x402/fetch, version 2, on Plasma", () => {
  let devnet: Devnet;
  let facilitator: CoinslotFacilitator;
  let seller: Seller;

  beforeAll(async () => {
    devnet = await startDevnet({ chainId: 9745 });
    await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
    facilitator = createTestFacilitator(devnet);
    seller = await startSeller({ devnet, facilitator });
  });

  afterAll(async () => {
    await seller?.close();
    await facilitator?.close();
    await devnet?.stop();
  });

  for (const path of ["/weather", "/stream"]) {
    it(`buys ${path} and the money moves`, async () => {
      const before = await balanceOf(devnet, devnet.accounts.seller.address);
      const pay = createReferenceFetch(devnet, devnet.accounts.buyer);

      const response = await pay(`${seller.url}${path}`);

      expect(response.status).toBe(200);
      expect(await response.json()).toEqual({ forecast: "sun" });
      const header = response.headers.get("PAYMENT-RESPONSE") ?? "";
      const receipt = decodePaymentResponseHeader(header);
      expect(receipt).toMatchObject({ success: true, network: devnet.network });
      expect(decodeReceipt(header).payer?.toLowerCase()).toBe(
        devnet.accounts.buyer.address.toLowerCase(),
      );
      const paid = (await balanceOf(devnet, devnet.accounts.seller.address)) - before;
      expect(paid).toBe(priceOfWeather);
    });
  }
});

describe("@x402/fetch with the payment identifier of @x402/extensions", () => {
  it("gets the declaration that this package itself writes", () => {
    const declared = declarePaymentIdentifierExtension();
    expect(paymentIdentifierExtension).toEqual({ [PAYMENT_IDENTIFIER]: declared });
  });

  it("receives a lost answer again for the same payment, and pays once", async () => {
    const shop = await openWeatherShop();
    try {
      const { devnet, seller } = shop;
      const sent: Request[] = [];
      const client = createReferenceClient(devnet, devnet.accounts.buyer);
      client.onBeforePaymentCreation(async ({ paymentRequired }) => {
        appendPaymentIdentifierToExtensions(paymentRequired.extensions ?? {});
      });
      const pay = wrapFetchWithPayment((input, init) => {
        const request = new Request(input, init);
        sent.push(request.clone());
        return fetch(request);
      }, client);

      const first = await pay(`${seller.url}/weather`);
      expect(first.status).toBe(200);
      const paid = sent.at(-1);
      expect(paid?.headers.has("Idempotency-Key")).toBe(false);
      const again = await fetch(paid?.clone() ?? seller.url);

      expect(again.status).toBe(200);
      expect(await again.json()).toEqual(await first.json());
      expect(seller.runs()).toBe(1);
      expect(await balanceOf(devnet, devnet.accounts.seller.address)).toBe(priceOfWeather);
    } finally {
      await shop.close();
    }
  });
});

describe("the legacy clients of version 1", () => {
  it.each([
    ["Plasma, without a legacy name", 9745],
    ["Stable, with a name unknown to them", 988],
  ])("buy on Base Sepolia from a route that is also sold on %s", async (_case, otherChainId) => {
    const devnet = await startDevnet({ chainId: 84532 });
    const other = await startDevnet({ chainId: otherChainId });
    const facilitator = createFacilitator({
      networks: [devnet, other].map(({ network, rpcUrl, accounts }) => {
        return { network, rpcUrls: [rpcUrl], relayer: accounts.relayer };
      }),
      ledger: "sqlite::memory:",
    });
    const accepts = [...weatherPrice(other), ...weatherPrice(devnet)];
    const gate = paymentMiddleware({ "GET /weather": { accepts } }, facilitator, {
      legacyNetworkNames: true,
    });
    const app = express().use(gate);
    app.get("/weather", (_request, response) => void response.json({ forecast: "sun" }));
    await gate.ready();
    const seller = await listen(app);
    try {
      await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
      const wallet = createLegacyWallet(devnet, devnet.accounts.buyer);
      const byFetch = await wrapFetchWithPaymentV1(fetch, wallet)(`${seller.url}/weather`);
      expect(byFetch.status).toBe(200);
      const byAxios = await withPaymentInterceptor(axios.create(), wallet).get(
        `${seller.url}/weather`,
      );
      expect(byAxios.status).toBe(200);
      expect(byAxios.data).toEqual({ forecast: "sun" });
      expect(await balanceOf(devnet, devnet.accounts.seller.address)).toBe(2n * priceOfWeather);

      const offered = await supertest(seller.url).get("/weather").expect(402);
      const header = decodePaymentRequiredHeader(offered.get("PAYMENT-REQUIRED") ?? "");
      expect(header.accepts.map(({ network }) => network)).toEqual([other.network, devnet.network]);
    } finally {
      await seller.close();
      await facilitator.close();
      await Promise.all([devnet.stop(), other.stop()]);
    }
  });
});

describe("x402-fetch, the legacy client of version 1, on Base Sepolia by its legacy name", () => {
  it("buys when legacy names are switched on", async () => {
    const devnet = await startDevnet({ chainId: 84532 });
    const facilitator = createTestFacilitator(devnet);
    const seller = await startSeller({ devnet, facilitator, legacyNetworkNames: true });
    try {
      await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
      const wallet = createLegacyWallet(devnet, devnet.accounts.buyer);
      const pay = wrapFetchWithPaymentV1(fetch, wallet);

      const response = await pay(`${seller.url}/weather`);

      expect(response.status).toBe(200);
      expect(await response.json()).toEqual({ forecast: "sun" });
      expect(decodeReceipt(response.headers.get("X-PAYMENT-RESPONSE") ?? "").success).toBe(true);
      expect(await balanceOf(devnet, devnet.accounts.seller.address)).toBe(priceOfWeather);
    } finally {
      await seller.close();
      await facilitator.close();
      await devnet.stop();
    }
  });
});
