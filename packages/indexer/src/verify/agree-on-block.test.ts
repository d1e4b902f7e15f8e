import { createRpcPool } from "@coinslot/chain";
import type { Devnet } from "@coinslot/devnet";
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
  const context = await openContext(rpcUrls);
  const { pool, outvoted } = context;
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
  const top = await newestOf(devnet);
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
  const agreement = await agreeOnBlock(
    await openContext(rpcUrls),
    await newestOf(devnet),
    new AbortController().signal,
  );
  expect(agreement).not.toHaveProperty("deniedAbove");
});

it("has nothing decided by outvoted endpoints that differ, or lack the block", async () => {
  const devnet = await startUsedChain();
  const head = await devnet.client.getBlockNumber();
  const fork = await startFork(devnet, head - 1n);
  await fork.mine(30);
  const late = await startFork(devnet, head);
  await devnet.mine(3);
  const { signal } = new AbortController();
  const among = async (rpcUrls: string[], before: number[]) => {
    const context = await openContext(rpcUrls, before);
    await agreeOnBlock(context, await newestOf(devnet), signal);
    return [...context.outvoted];
  };
  expect(await among([fork.rpcUrl, "http://127.0.0.1:1"], [1])).toEqual([1]);
  expect(await among([devnet.rpcUrl, fork.rpcUrl, fork.rpcUrl], [2, 3])).toEqual([2, 3]);
  expect(await among([late.rpcUrl, devnet.rpcUrl], [1, 2])).toEqual([1]);
});

it("has denied blocks taken back once, also behind another request", async () => {
  const devnet = await startUsedChain();
  const fork = await startFork(devnet, await devnet.client.getBlockNumber());
  await fork.mine(200);
  const rpcUrls = [fork.rpcUrl, devnet.rpcUrl, devnet.rpcUrl];
  const opened = await openContext(rpcUrls);
  const { kysely, dialect } = opened.database;
  const { chainId } = opened.chain;
  const context = {
    ...opened,
    tokens: [{ id: 1 }],
    rewrites: { count: 0 },
    lease: {
      write: <T>(run: (transaction: Transaction<IndexerSchema>) => Promise<T>) =>
        kysely.transaction().execute(run),
    },
  };
  await addRequest(kysely, dialect, { chainId, kind: "verify", from: 0 });
  const { signal } = new AbortController();
  const top = await newestOf(fork);
  await voteOnFinal(context, top, signal);
  await voteOnFinal(context, top, signal);
  const requests = await kysely.selectFrom("indexer_requests").select("kind").execute();
  expect(requests.map(({ kind }) => kind)).toEqual(["verify", "rewind"]);
});

async function openContext(rpcUrls: string[], outvoted: readonly number[] = []) {
  const configuration = { chains: [devnetChain({ rpcUrls })], database: "sqlite::memory:" };
  const indexer = createIndexer(configuration);
  onTestFinished(() => indexer.close());
  const [chain] = readConfiguration(configuration).chains;
  if (chain === undefined) throw new Error("No chain");
  const pool = createRpcPool({ chainId: chain.chainId, rpcUrls });
  onTestFinished(() => pool.close());
  const database = await indexer.database();
  return { chain, database, logger: silentLogger, pool, outvoted: new Set(outvoted) };
}

async function newestOf({ client }: Devnet) {
  const { number, hash } = await client.getBlock();
  return { number: Number(number), hash };
}
