import { type Devnet, startDevnet } from "@coinslot/devnet";
import { createLogger, type IndexerService, startIndexerService } from "@coinslot/hosting";
import { devnetChain } from "@coinslot/indexer";
import supertest from "supertest";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { openShop, price, type Shop } from "./testing/shop.ts";

let devnet: Devnet;
let service: IndexerService;

beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 5_000_000n });
  service = await startIndexerService(
    {
      host: "127.0.0.1",
      port: 0,
      authStatus: "specified",
      trustProxy: 0,
      logLevel: "silent",
      indexer: {
        chains: [devnetChain({ rpcUrls: [devnet.rpcUrl] })],
        database: "sqlite::memory:",
      },
    },
    { logger: createLogger("silent") },
  );
  await vi.waitFor(async () => expect((await service.indexer.status()).health).toBe("healthy"), {
    timeout: 20_000,
  });
});

afterAll(async () => {
  await service?.stop();
  await devnet?.stop();
});

async function openShopWith(key: string): Promise<Shop> {
  const shop = await openShop(devnet, { remote: { url: service.url, apiKey: key } });
  onTestFinished(() => shop.stop());
  return shop;
}

describe("a paid indexer before a remote indexing service", () => {
  it("sells that service's data, within its key's limit over all buyers", async () => {
    const { key } = await service.keys.create({
      owner: "shop",
      limit: { max: 1_000, windowMs: 10_000 },
    });
    const shop = await openShopWith(key);
    const owner = `${shop.url}/api/v1/devnet/usdt/${devnet.accounts.buyer.address}`;
    for (let count = 0; count < 6; count += 1) {
      const response = await shop.pay(`${owner}/token-balances`);
      expect(response.status).toBe(200);
    }
    expect(await shop.takings()).toBe(6n * price);
    await supertest(shop.url).get("/api/v1/health").expect(200);
  });

  it("charges nothing once its key's limit is reached", async () => {
    const { key } = await service.keys.create({ owner: "shop" });
    const shop = await openShopWith(key);
    const before = await shop.takings();
    const path = `/api/v1/devnet/usdt/${devnet.accounts.buyer.address}/token-balances`;
    // Every key may ask four times in ten seconds: three times as many are too many in any ten.
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => shop.pay(`${shop.url}${path}`)),
    );
    const sold = answers.filter(({ status }) => status === 200);
    const refused = answers.filter(({ status }) => status === 429);
    expect(sold.length + refused.length).toBe(12);
    expect(refused.length).toBeGreaterThan(0);
    for (const response of refused) {
      expect(await response.json()).toMatchObject({ error: "Too Many Requests", status: 429 });
      expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    }
    expect((await shop.takings()) - before).toBe(price * BigInt(sold.length));
  });
});
