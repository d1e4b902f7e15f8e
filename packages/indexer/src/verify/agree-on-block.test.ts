import { type Clock, createRpcPool, systemClock } from "@coinslot/chain";
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

it("has denied blocks taken back once, also behind another request", async () => {
  const devnet = await startUsedChain();
  const fork = await startFork(devnet, await devnet.client.getBlockNumber());
  await fork.mine(200);
  const { vote, readRequests, database } = await openVote(
    [fork.rpcUrl, devnet.rpcUrl, devnet.rpcUrl],
    { top: fork },
  );
  const { kysely, dialect } = database;
  await addRequest(kysely, dialect, { chainId: devnet.chainId, kind: "verify", from: 0 });
  await vote();
  await vote();
  expect(await readRequests()).toEqual(["verify", "rewind"]);
});

it("has no true block taken back by gateways whose nodes lag, or by one vote of theirs", async () => {
  const devnet = await startUsedChain();
  const late = await startFork(devnet, await devnet.client.getBlockNumber());
  await devnet.mine(200);
  const gateways = [await startFaultProxy(late.rpcUrl), await startFaultProxy(late.rpcUrl)];
  const beforePause = () => {
    for (const gateway of gateways) gateway.setUpstream(devnet.rpcUrl);
  };
  const { vote, readRequests, outvoted } = await openVote(
    [devnet.rpcUrl, ...gateways.map(({ url }) => url)],
    { top: devnet, beforePause },
  );
  expect(await vote()).toMatchObject({ isShared: true });
  expect(await readRequests()).toEqual([]);
  expect([...outvoted]).toEqual([]);

  // The newest block comes from another node each time.
  for (const gateway of gateways)
    gateway.set(async ({ calls, forward, reply }) => {
      const isNewest = calls.some(({ params }) => params[0] === "latest");
      gateway.setUpstream(isNewest ? devnet.rpcUrl : late.rpcUrl);
      reply(await forward());
    });
  expect(await vote()).not.toHaveProperty("deniedAbove");
  expect(await readRequests()).toEqual([]);
});

/** Votes of a chain's endpoints about the newest block of `top`. */
async function openVote(
  rpcUrls: string[],
  { top, beforePause = () => undefined }: { top: Devnet; beforePause?: () => void },
) {
  const configuration = { chains: [devnetChain({ rpcUrls })], database: "sqlite::memory:" };
  const indexer = createIndexer(configuration);
  onTestFinished(() => indexer.close());
  const database = await indexer.database();
  const { kysely } = database;
  const [chain] = readConfiguration(configuration).chains;
  if (chain === undefined) throw new Error("No chain");
  const pool = createRpcPool({ chainId: chain.chainId, rpcUrls });
  onTestFinished(() => pool.close());
  const { number, hash } = await top.client.getBlock();
  const outvoted = new Set<number>();
  const clock: Clock = {
    ...systemClock,
    setTimer(run) {
      beforePause();
      return systemClock.setTimer(run, 0);
    },
  };
  const lease = {
    write: <T>(run: (transaction: Transaction<IndexerSchema>) => Promise<T>) =>
      kysely.transaction().execute(run),
  };
  const rewrites = { count: 0 };
  const context = { chain, database, logger: silentLogger, pool, outvoted, rewrites, clock, lease };
  const block = { number: Number(number), hash };
  return {
    database,
    outvoted,
    vote: () => voteOnFinal(context, block, new AbortController().signal),
    async readRequests() {
      const requests = await kysely.selectFrom("indexer_requests").select("kind").execute();
      return requests.map(({ kind }) => kind);
    },
  };
}
