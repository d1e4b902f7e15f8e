import { type Devnet, startDevnet } from "@coinslot/devnet";
import { devnetChain } from "@coinslot/indexer";
import supertest from "supertest";
import { expect, it, onTestFinished } from "vitest";
import { createLogger } from "../create-logger.ts";
import { startIndexerService } from "./start-service.ts";

const finalDepth = 5;
/** Timeout for conditions, on a busy machine. */
const patience = { timeout: 20_000 };

async function startChain(chainId: number): Promise<Devnet> {
  const devnet = await startDevnet({ chainId });
  onTestFinished(() => devnet.stop());
  await devnet.mine(4 * finalDepth);
  return devnet;
}

/** Replaces final blocks, which the indexer undoes by command only. */
async function replaceFinalBlocks(devnet: Devnet): Promise<void> {
  await devnet.reorg({ depth: 2 * finalDepth });
  await devnet.mine(1);
}

it("the indexing service is ready while one of its chains is served, and not once all are stopped", async () => {
  const [first, second] = [await startChain(9745), await startChain(988)];
  const common = {
    pollIntervalMs: 10,
    finality: { depth: finalDepth },
    verifyAfterMs: 100,
    maxRewindBlocks: 0,
  };
  const service = await startIndexerService(
    {
      host: "127.0.0.1",
      port: 0,
      authStatus: "specified",
      trustProxy: 0,
      logLevel: "silent",
      indexer: {
        chains: [
          devnetChain({ name: "first", rpcUrls: [first.rpcUrl], ...common }),
          devnetChain({ name: "second", chainId: 988, rpcUrls: [second.rpcUrl], ...common }),
        ],
        database: "sqlite::memory:",
      },
    },
    { logger: createLogger("silent") },
  );
  onTestFinished(() => service.stop());
  async function readReadiness() {
    const { status, body } = await supertest(service.url).get("/readyz");
    return { status, body };
  }
  const readHealth = async () => (await service.indexer.status()).health;
  await expect.poll(readHealth, patience).toBe("healthy");
  await expect.poll(readReadiness, patience).toEqual({
    status: 200,
    body: { status: "ready", database: "healthy", role: "writer" },
  });

  const isVerified = async () =>
    (await service.indexer.status()).chains.every(({ finalized, tokens }) =>
      tokens.every(({ verifiedTo }) => verifiedTo === finalized),
    );
  await expect.poll(isVerified, patience).toBe(true);
  await replaceFinalBlocks(first);
  await expect.poll(readReadiness, patience).toMatchObject({
    status: 200,
    body: { status: "ready", stopped: ["first"] },
  });
  await replaceFinalBlocks(second);
  await expect.poll(readReadiness, patience).toMatchObject({
    status: 503,
    body: { status: "not ready", stopped: ["first", "second"] },
  });
});
