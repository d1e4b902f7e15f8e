import { prepareOutage, startDevnet } from "@coinslot/devnet";
import { devnetChain } from "@coinslot/indexer";
import supertest from "supertest";
import { expect, it, onTestFinished } from "vitest";
import { createLogger } from "../create-logger.ts";
import { createDatabaseUrl } from "../testing/database-url.ts";
import { startIndexerService } from "./start-service.ts";

it("an outage of PostgreSQL is answered in JSON, and ends with the database's return", async () => {
  const devnet = await startDevnet();
  onTestFinished(() => devnet.stop());
  const database = await createDatabaseUrl("postgres");
  const outage = await prepareOutage(database);
  onTestFinished(outage.close);
  const chains = [devnetChain({ rpcUrls: [devnet.rpcUrl], pollIntervalMs: 10 })];
  const service = await startIndexerService(
    {
      host: "127.0.0.1",
      port: 0,
      authStatus: "specified",
      trustProxy: 0,
      logLevel: "silent",
      indexer: { chains, database, leaseMs: 600 },
    },
    { logger: createLogger("silent") },
  );
  onTestFinished(() => service.stop());
  const limit = { max: 100_000, windowMs: 1_000 };
  const { key } = await service.keys.create({ owner: "test", limit });

  async function call(path: string, items?: object[]) {
    const api = supertest(service.url);
    const request = items === undefined ? api.get(path) : api.post(path).send(items);
    const { status, headers, body } = await request.set("x-api-key", key);
    return { status, retryAfter: headers["retry-after"], body };
  }
  const holder = devnet.accounts.buyer.address;
  const owner = { blockchain: "devnet", token: "usdt", address: holder };
  const questions = () =>
    Promise.all([
      call("/api/v1/chains"),
      call(`/api/v1/devnet/usdt/${holder}/token-transfers`),
      call(`/api/v1/devnet/usdt/${holder}/token-balances`),
      call("/api/v1/batch/token-transfers", [owner]),
      call("/api/v1/batch/token-balances", [owner]),
      call("/api/v1/keys"),
    ]);
  const isHealthy = async () => (await call("/api/v1/health")).status;
  await expect.poll(isHealthy, { timeout: 20_000 }).toBe(200);
  const before = await questions();
  expect(before.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);

  await outage.begin();
  for (const answer of await questions()) {
    expect(answer).toEqual({
      status: 500,
      retryAfter: "1",
      body: {
        error: "Internal Server Error",
        message: "The service cannot answer at the moment: try again soon.",
        status: 500,
      },
    });
  }
  expect(await call("/api/v1/health")).toMatchObject({
    status: 503,
    body: { status: "unhealthy", checks: { database: { status: "unhealthy" } } },
  });
  expect(await call("/readyz")).toMatchObject({ status: 503, body: { status: "not ready" } });
  expect(await call("/livez")).toMatchObject({ status: 200 });
  await devnet.mint({ to: holder, amount: 5n });

  await outage.end();
  await expect.poll(isHealthy, { timeout: 20_000 }).toBe(200);
  // Its answers are kept for a second.
  await expect.poll(() => call("/readyz"), { timeout: 20_000 }).toMatchObject({ status: 200 });
  const newest = async () =>
    (await call(`/api/v1/devnet/usdt/${holder}/token-transfers?limit=1`)).body;
  await expect
    .poll(newest, { timeout: 20_000 })
    .toMatchObject({ transfers: [{ amount: "5", to: holder.toLowerCase() }] });
});
