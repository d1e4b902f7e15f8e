import { createRpcPool } from "@coinslot/chain";
import type { Transaction } from "kysely";
import { expect, it, onTestFinished } from "vitest";
import { devnetChain } from "../chains/indexer-chain.ts";
import { readConfiguration } from "../configuration.ts";
import { createIndexer } from "../create-indexer.ts";
import { silentLogger } from "../logger.ts";
import { addRequest } from "../store/requests.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { startFaultProxy } from "../testing/fault-proxy.ts";
import { startFork, startUsedChain } from "../testing/scene.ts";
import { agreeOnBlock } from "./agree-on-block.ts";
import { voteOnFinal } from "./vote-on-final.ts";

it("outvotes no endpoint where the writer has ended since the answers", async () => {
  const devnet = await startUsedChain();
  const fork = await startFork(devnet, 5n);
  await fork.mine(30);
  const rpcUrls = [fork.rpcUrl, devnet.rpcUrl, devnet.rpcUrl];
  const configuration = { chains: [devnetChain({ rpcUrls })], database: "sqlite::memory:" };
  const indexer = createIndexer(configuration);
  onTestFinished(() => indexer.close());
  const database = await indexer.database();
  const [chain] = readConfiguration(configuration).chains;
  if (chain === undefined) throw new Error("No chain");
  const pool = createRpcPool({ chainId: devnet.chainId, rpcUrls });
  onTestFinished(() => pool.close());
  const writer = new AbortController();
  let answers = 0;
  const ending = pool.endpoints.map((endpoint) => ({
    ...endpoint,
    async requestMany(...question: Parameters<typeof endpoint.requestMany>) {
      const outcomes = await endpoint.requestMany(...question);
      answers += 1;
      if (answers === rpcUrls.length) writer.abort(new Error("The lease is lost"));
      return outcomes;
    },
  }));
  const { number, hash } = await devnet.client.getBlock();
  const top = { number: Number(number), hash };
  const outvoted = new Set<number>();
  const context = { chain, database, logger: silentLogger, pool, outvoted };
  await agreeOnBlock(context, top, writer.signal);
  expect([...outvoted]).toEqual([1]);
  outvoted.clear();
  const ended = agreeOnBlock(
    { ...context, pool: { ...pool, endpoints: ending } },
    top,
    writer.signal,
  );
  await expect(ended).rejects.toThrow("The lease is lost");
  expect([...outvoted]).toEqual([]);
});

it("has no true block taken back by gateways whose votes are of nodes that lag", async () => {
  const devnet = await startUsedChain();
  const late = await startFork(devnet, await devnet.client.getBlockNumber());
  await devnet.mine(200);
  const gateways = [await startFaultProxy(late.rpcUrl), await startFaultProxy(late.rpcUrl)];
  // Their newest blocks come from another node.
  for (const gateway of gateways)
    gateway.set(async ({ calls, forward, reply }) => {
      const isNewest = calls.some(({ params }) => params[0] === "latest");
      gateway.setUpstream(isNewest ? devnet.rpcUrl : late.rpcUrl);
      reply(await forward());
    });
  const rpcUrls = [devnet.rpcUrl, ...gateways.map(({ url }) => url)];
  const configuration = { chains: [devnetChain({ rpcUrls })], database: "sqlite::memory:" };
  const indexer = createIndexer(configuration);
  onTestFinished(() => indexer.close());
  const [chain] = readConfiguration(configuration).chains;
  if (chain === undefined) throw new Error("No chain");
  const pool = createRpcPool({ chainId: chain.chainId, rpcUrls });
  onTestFinished(() => pool.close());
  const { number, hash } = await devnet.client.getBlock();
  const agreement = await agreeOnBlock(
    {
      chain,
      database: await indexer.database(),
      logger: silentLogger,
      pool,
      outvoted: new Set<number>(),
    },
    { number: Number(number), hash },
    new AbortController().signal,
  );
  expect(agreement).not.toHaveProperty("deniedAbove");
});

it("has denied blocks taken back once, also behind another request", async () => {
  const devnet = await startUsedChain();
  const fork = await startFork(devnet, await devnet.client.getBlockNumber());
  await fork.mine(200);
  const rpcUrls = [fork.rpcUrl, devnet.rpcUrl, devnet.rpcUrl];
  const configuration = { chains: [devnetChain({ rpcUrls })], database: "sqlite::memory:" };
  const indexer = createIndexer(configuration);
  onTestFinished(() => indexer.close());
  const database = await indexer.database();
  const { kysely, dialect } = database;
  const [chain] = readConfiguration(configuration).chains;
  if (chain === undefined) throw new Error("No chain");
  const { chainId } = chain;
  const pool = createRpcPool({ chainId, rpcUrls });
  onTestFinished(() => pool.close());
  const { number, hash } = await fork.client.getBlock();
  const context = {
    chain,
    database,
    logger: silentLogger,
    pool,
    outvoted: new Set<number>(),
    tokens: [{ id: 1 }],
    rewrites: { count: 0 },
    lease: {
      write: <T>(run: (transaction: Transaction<IndexerSchema>) => Promise<T>) =>
        kysely.transaction().execute(run),
    },
  };
  await addRequest(kysely, dialect, { chainId, kind: "verify", from: 0 });
  const { signal } = new AbortController();
  await voteOnFinal(context, { number: Number(number), hash }, signal);
  await voteOnFinal(context, { number: Number(number), hash }, signal);
  const requests = await kysely.selectFrom("indexer_requests").select("kind").execute();
  expect(requests.map(({ kind }) => kind)).toEqual(["verify", "rewind"]);
});
