import { type Devnet, startDevnet } from "@coinslot/devnet";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { devnetChain } from "./chains/indexer-chain.ts";
import { createIndexer } from "./create-indexer.ts";
import { engines } from "./testing/engines.ts";
import { expectExact } from "./testing/oracle.ts";
import { webhookSecret } from "./testing/webhook-receiver.ts";

let devnet: Devnet;

beforeAll(async () => {
  devnet = await startDevnet();
});
afterAll(() => devnet.stop());

describe.each(engines)("an indexer on $engine", ({ createUrl }) => {
  it("reads history, switches over to live, and follows the head", async () => {
    const usdt = { blockchain: "devnet", token: "usdt", address: devnet.token };
    const [first, second] = devnet.accounts.others;
    if (first === undefined || second === undefined) throw new Error("too few accounts");
    for (let i = 1n; i <= 30n; i++) await devnet.mint({ to: first.address, amount: i });
    const indexer = createIndexer({
      chains: [devnetChain({ rpcUrls: [devnet.rpcUrl], pollIntervalMs: 20 })],
      database: await createUrl(),
    });
    onTestFinished(() => indexer.close());
    await indexer.start();
    await expectExact(indexer, devnet, usdt);
    for (let i = 1n; i <= 5n; i++) await devnet.mint({ to: second.address, amount: i });
    await expectExact(indexer, devnet, usdt);
    await devnet.reorg({ depth: 3 });
    await expectExact(indexer, devnet, usdt);
    const upToDate = { health: "healthy", chains: [{ state: "live", lagBlocks: 0 }] };
    await expect.poll(() => indexer.status(), { timeout: 20_000 }).toMatchObject(upToDate);
  });

  it("starts once its webhooks can be registered, where it could not before", async () => {
    const indexer = createIndexer({
      chains: [devnetChain({ rpcUrls: [devnet.rpcUrl] })],
      database: await createUrl(),
      webhooks: [{ id: "deposits", url: "https://receiver.example", secret: webhookSecret }],
    });
    onTestFinished(() => indexer.close());
    const { kysely } = await indexer.database();
    const rename = (from: string, to: string) =>
      sql`alter table ${sql.table(from)} rename to ${sql.table(to)}`.execute(kysely);
    await rename("indexer_outbox_endpoints", "away");
    await expect(indexer.start()).rejects.toThrow("indexer_outbox_endpoints");
    await rename("away", "indexer_outbox_endpoints");
    await indexer.start();
  });

  it("closes while it is about to become the writer", async () => {
    const indexer = createIndexer({
      chains: [devnetChain({ rpcUrls: [devnet.rpcUrl] })],
      database: await createUrl(),
    });
    await indexer.start();
    await indexer.close();
    await expect(indexer.database()).rejects.toThrow("closed");
  });
});
