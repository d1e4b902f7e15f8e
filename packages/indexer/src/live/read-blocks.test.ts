import { createRpcPool } from "@coinslot/chain";
import type { Devnet } from "@coinslot/devnet";
import type { Hash } from "viem";
import { describe, expect, it, onTestFinished } from "vitest";
import { devnetChain } from "../chains/indexer-chain.ts";
import { createIndexer } from "../create-indexer.ts";
import { createChainEvidence } from "../proof/chain-evidence.ts";
import type { BlockId } from "../store/block-id.ts";
import { changing, startFaultProxy } from "../testing/fault-proxy.ts";
import { startChain } from "../testing/scene.ts";
import { readBlocks } from "./read-blocks.ts";

describe("blocks without logs, whose filters of zeros prove nothing", () => {
  it("are read by their receipts in one request for all of them", async () => {
    const devnet = await startChain();
    const blocks: BlockId[] = [];
    while (blocks.length < 32) blocks.push(await blockOf(devnet, await send(devnet)));
    const { read, proxy } = await openReader(devnet);
    const before = proxy.requests.length;
    const batches = await read(blocks);
    expect(proxy.requests.length - before).toBe(2);
    expect(batches.flatMap(({ rows }) => rows)).toEqual([]);
    expect(batches).toHaveLength(32);
  });

  it("hide no transfer among them that the endpoint leaves out", async () => {
    const devnet = await startChain();
    const first = await blockOf(devnet, await send(devnet));
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
    const { number, hash } = await devnet.client.getBlock();
    const last = await blockOf(devnet, await send(devnet));
    const { read, proxy } = await openReader(devnet);
    proxy.set(changing("eth_getLogs", (answer) => ({ ...answer, result: [] })));
    const batches = await read([first, { number: Number(number), hash }, last]);
    expect(batches.map(({ rows }) => rows.length)).toEqual([0, 1, 0]);
  });

  it("are read in more requests where they are full of transactions", async () => {
    const devnet = await startChain();
    const blocks: BlockId[] = [];
    await devnet.setAutomine(false);
    while (blocks.length < 2) {
      const sent: Hash[] = [];
      while (sent.length < 251) sent.push(await send(devnet));
      await devnet.mine();
      blocks.push(await blockOf(devnet, sent[0]));
    }
    const { read, proxy } = await openReader(devnet);
    const before = proxy.requests.length;
    await read(blocks);
    expect(proxy.requests.length - before).toBe(3);
  });
});

/** A transaction without logs. */
function send({ client, accounts }: Devnet): Promise<Hash> {
  const to = accounts.seller.address;
  return client.sendTransaction({ account: accounts.buyer, to, value: 1n, gas: 21_000n });
}

async function blockOf({ client }: Devnet, hash: Hash | undefined): Promise<BlockId> {
  if (hash === undefined) throw new Error("No transaction");
  const { blockNumber, blockHash } = await client.waitForTransactionReceipt({ hash });
  return { number: Number(blockNumber), hash: blockHash };
}

async function openReader({ chainId, rpcUrl, token }: Devnet) {
  const proxy = await startFaultProxy(rpcUrl);
  const pool = createRpcPool({ chainId, rpcUrls: [proxy.url] });
  onTestFinished(() => pool.close());
  await pool.ready();
  const chains = [devnetChain({ rpcUrls: [rpcUrl] })];
  const indexer = createIndexer({ chains, database: "sqlite::memory:" });
  onTestFinished(() => indexer.close());
  const { dialect } = await indexer.database();
  const known = { blockchain: "devnet", token: "usdt", address: lower(token) };
  const question = {
    tokens: [{ ...known, id: 1, chainId, startBlock: 0 }],
    dialect,
    tolerates: (oddities: readonly string[]) => oddities.length === 0,
    maxLogs: new Map<number, number>(),
    evidence: createChainEvidence(),
  };
  const read = (blocks: readonly BlockId[]) =>
    pool.onEndpoint((endpoint) => readBlocks(endpoint, { ...question, blocks }));
  return { proxy, read };
}

function lower(address: string): `0x${string}` {
  return `0x${address.slice(2).toLowerCase()}`;
}
