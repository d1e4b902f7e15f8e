import { createHash } from "node:crypto";
import { type Devnet, type Listening, listen, startDevnet } from "@coinslot/devnet";
import { runFacilitatorService } from "@coinslot/hosting";
import { HTTPFacilitatorClient } from "@x402/core/server";
import express from "express";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { balanceOf } from "../support/balance.ts";
import { createReferenceFetch, startReferenceSeller } from "../support/reference.ts";
import { priceOfWeather } from "../support/seller.ts";

/** Timeout for conditions, on a busy machine. */
const patience = { timeout: 20_000 };

const key = "a-key-that-only-this-shop-has";

const ending = new AbortController();
let devnet: Devnet;
let url: string;
let running: Promise<void>;

beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
  const env = {
    COINSLOT_NETWORK: devnet.network,
    COINSLOT_RPC_URL: devnet.rpcUrl,
    COINSLOT_LEDGER: "sqlite::memory:",
    FACILITATOR_PRIVATE_KEY: devnet.accounts.relayer.privateKey,
    FACILITATOR_PORT: "0",
    FACILITATOR_KEYS: `shop:sha256:${createHash("sha256").update(key).digest("hex")}`,
    FACILITATOR_PAY_TO: devnet.accounts.seller.address,
    FACILITATOR_UNSAFE_PRIVATE_CALLBACKS: "true",
    FACILITATOR_LOG_LEVEL: "silent",
  };
  url = await new Promise<string>((resolve, reject) => {
    const onServing = (service: { url: string }) => resolve(service.url);
    running = runFacilitatorService({ env, signal: ending.signal, onServing });
    running.catch(reject);
  });
});

afterAll(async () => {
  ending.abort();
  await running;
  await devnet?.stop();
});

/** A seller with released packages only, which sends these headers to the facilitator. */
function startSeller(headers: Record<string, string>): Promise<Listening> {
  const client = new HTTPFacilitatorClient({
    url,
    createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
  });
  return startReferenceSeller(devnet, client);
}

describe("the hosted facilitator", () => {
  it("serves @x402/express through its HTTPFacilitatorClient, and sends it events", async () => {
    const types: string[] = [];
    const receiver = express().post("/", express.json(), (request, response) => {
      types.push(request.body.type);
      response.sendStatus(204);
    });
    const events = await listen(receiver);
    const seller = await startSeller({
      Authorization: `Bearer ${key}`,
      "X-Event-Callback": events.url,
    });
    try {
      const before = await balanceOf(devnet, devnet.accounts.seller.address);
      const pay = createReferenceFetch(devnet, devnet.accounts.buyer);
      const response = await pay(`${seller.url}/weather`);
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual({ forecast: "sun" });
      const income = (await balanceOf(devnet, devnet.accounts.seller.address)) - before;
      expect(income).toBe(priceOfWeather);
      await expect
        .poll(() => types.toSorted(), patience)
        .toEqual(["settle_completed", "settle_started", "verify_completed", "verify_started"]);
    } finally {
      await Promise.all([seller.close(), events.close()]);
    }
  });

  it("lets no such seller sell without a key: the content is withheld", async () => {
    const seller = await startSeller({});
    try {
      const pay = createReferenceFetch(devnet, devnet.accounts.buyer);
      const response = await pay(`${seller.url}/weather`);
      expect(response.status).toBeGreaterThanOrEqual(400);
      expect(await response.text()).not.toContain("sun");
    } finally {
      await seller.close();
    }
  });
});
