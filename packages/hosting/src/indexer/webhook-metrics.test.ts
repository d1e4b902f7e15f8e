import { listen, startDevnet } from "@coinslot/devnet";
import { devnetChain, indexerWebhooks } from "@coinslot/indexer";
import supertest from "supertest";
import { expect, it, onTestFinished } from "vitest";
import { createLogger } from "../create-logger.ts";
import { startIndexerService } from "./start-service.ts";

const patience = { timeout: 60_000, interval: 50 };

it("the metrics of the indexing service count webhooks, their backlog and watched addresses", async () => {
  const devnet = await startDevnet();
  onTestFinished(() => devnet.stop());
  const receiver = await listen((_, response) => void response.writeHead(204).end());
  onTestFinished(() => receiver.close());
  const service = await startIndexerService(
    {
      host: "127.0.0.1",
      port: 0,
      authStatus: "specified",
      trustProxy: 0,
      logLevel: "silent",
      indexer: {
        chains: [devnetChain({ rpcUrls: [devnet.rpcUrl], pollIntervalMs: 20 })],
        database: "sqlite::memory:",
        webhooks: [
          {
            id: "default",
            url: receiver.url,
            secret: `whsec_${Buffer.alloc(32, 7).toString("base64")}`,
            unsafeAllowPrivateAddresses: true,
          },
        ],
      },
    },
    { logger: createLogger("silent") },
  );
  onTestFinished(() => service.stop());
  const webhooks = indexerWebhooks(await service.indexer.database());
  await webhooks.watch("default", [devnet.accounts.buyer.address]);
  await webhooks.test();
  const read = async () => (await supertest(service.url).get("/metrics")).text;
  const endpoint = 'endpoint="whk_default"';
  await expect
    .poll(read, patience)
    .toContain(`coinslot_indexer_webhooks_total{${endpoint},outcome="delivered"} 1`);
  await expect.poll(read, patience).toContain(`coinslot_indexer_webhooks_pending{${endpoint}} 0`);
  const text = await read();
  expect(text).toContain(`coinslot_indexer_webhooks_dead{${endpoint}} 0`);
  expect(text).toContain(`coinslot_indexer_webhooks_watched_addresses{${endpoint}} 1`);
});
