import { type Devnet, startDevnet } from "@coinslot/devnet";
import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { decodeReceipt } from "@coinslot/protocol";
import { decodePaymentResponseHeader } from "@x402/fetch";
import { createWalletClient, http, publicActions } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { wrapFetchWithPayment as wrapFetchWithPaymentV1 } from "x402-fetch";
import { balanceOf } from "../support/balance.ts";
import { createReferenceFetch } from "../support/reference.ts";
import {
  createTestFacilitator,
  priceOfWeather,
  type Seller,
  startSeller,
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

describe("x402-fetch, the legacy client of version 1, on Base Sepolia by its legacy name", () => {
  it("buys when legacy names are switched on", async () => {
    const devnet = await startDevnet({ chainId: 84532 });
    const facilitator = createTestFacilitator(devnet);
    const seller = await startSeller({ devnet, facilitator, legacyNetworkNames: true });
    try {
      await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
      const wallet = createWalletClient({
        account: devnet.accounts.buyer,
        chain: devnet.client.chain,
        transport: http(devnet.rpcUrl),
      }).extend(publicActions);
      const pay = wrapFetchWithPaymentV1(
        fetch,
        wallet as unknown as Parameters<typeof wrapFetchWithPaymentV1>[1],
      );

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
