import type { Devnet } from "@coinslot/devnet";
import { numberToHex } from "viem";
import { describe, expect, it } from "vitest";
import type { Indexer } from "../indexer.ts";
import { enginesByDay } from "../testing/engines.ts";
import { changing, errorAnswer, type FaultProxy, startFaultProxy } from "../testing/fault-proxy.ts";
import { expectExact } from "../testing/oracle.ts";
import { startChain, startIndexer, usdtOf } from "../testing/scene.ts";

/** Depth alone would call a block final that has two on top. */
const finality = { finalizedTag: true, depth: 2 };
/** The state of the chain's head is written once a second. */
const soon = { timeout: 60_000 };

/** The block that a node calls final from now on. */
async function tagFinalized({ client }: Devnet, proxy: FaultProxy, number: number): Promise<void> {
  const { hash, parentHash, timestamp } = await client.getBlock({ blockNumber: BigInt(number) });
  const numbers = { number: numberToHex(number), timestamp: numberToHex(timestamp) };
  proxy.set(
    changing("eth_getBlockByNumber", (answer, { params: [tag] }) =>
      tag === "finalized" ? { ...answer, result: { hash, parentHash, ...numbers } } : answer,
    ),
  );
}

/** Blocks of the seller's final transfers, the newest first. */
async function readFinal(indexer: Indexer, devnet: Devnet): Promise<number[]> {
  const query = { sort: "desc", limit: 100, fromMs: 0 } as const;
  const { address } = devnet.accounts.seller;
  const transfers = await indexer.readTransfers({ ...usdtOf(devnet), ...query, address });
  return transfers.flatMap(({ blockNumber, finalized }) => (finalized ? [blockNumber] : []));
}

describe.each(enginesByDay)("finality, on $engine", ({ createUrl }) => {
  it("is the node's finalized tag: above it any reorganisation is followed", async () => {
    const devnet = await startChain();
    const { seller } = devnet.accounts;
    for (let amount = 1n; amount <= 12n; amount++)
      await devnet.mint({ to: seller.address, amount });
    const head = Number(await devnet.client.getBlockNumber());
    const proxy = await startFaultProxy(devnet.rpcUrl);
    await tagFinalized(devnet, proxy, head - 10);
    const indexer = await startIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { finality },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect((await indexer.status()).chains[0]).toMatchObject({ finalized: head - 10 });
    await expect.poll(() => readFinal(indexer, devnet), soon).toEqual([head - 10, head - 11]);

    await devnet.reorg({ depth: 10 });
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect((await indexer.status()).chains[0]).toMatchObject({
      state: "live",
      finalized: head - 10,
    });

    await devnet.mint({ to: seller.address, amount: 50n });
    await tagFinalized(devnet, proxy, head + 1);
    await expect
      .poll(() => readFinal(indexer, devnet), soon)
      .toEqual([head + 1, head - 10, head - 11]);
  });

  it("is no endpoint's word alone: two have to call a block final", async () => {
    const devnet = await startChain();
    const { seller } = devnet.accounts;
    for (let amount = 1n; amount <= 8n; amount++) await devnet.mint({ to: seller.address, amount });
    const head = Number(await devnet.client.getBlockNumber());
    const upstreams = [devnet.rpcUrl, devnet.rpcUrl, devnet.rpcUrl];
    const proxies = await Promise.all(upstreams.map((url) => startFaultProxy(url)));
    const [hasty, second, third] = proxies;
    if (hasty === undefined || second === undefined || third === undefined)
      throw new Error("Three");
    await tagFinalized(devnet, hasty, head);
    for (const proxy of [second, third]) await tagFinalized(devnet, proxy, head - 5);
    const indexer = await startIndexer({
      rpcUrls: proxies.map(({ url }) => url),
      database: await createUrl(),
      chain: { finality, verifyAfterMs: 50 },
    });
    await expect
      .poll(async () => (await indexer.status()).chains[0], soon)
      .toMatchObject({
        finalized: head,
        problem: expect.stringMatching(/final at endpoint 1 alone/),
      });
    expect(await readFinal(indexer, devnet)).toEqual([head - 5, head - 6, head - 7]);

    await tagFinalized(devnet, second, head);
    await expect.poll(async () => (await readFinal(indexer, devnet))[0], soon).toBe(head);
  });

  it.each([
    ["refuses it", (id: number) => errorAnswer({ id }, -32_602, "invalid block tag")],
    ["has none", (id: number) => ({ jsonrpc: "2.0", id, result: null })],
  ])("is a depth where a node has no such tag and %s", async (_, answerTag) => {
    const devnet = await startChain();
    for (let amount = 1n; amount <= 5n; amount++)
      await devnet.mint({ to: devnet.accounts.seller.address, amount });
    const proxy = await startFaultProxy(devnet.rpcUrl);
    proxy.set(
      changing("eth_getBlockByNumber", (answer, { id, params: [tag] }) =>
        tag === "finalized" ? answerTag(id) : answer,
      ),
    );
    const indexer = await startIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { finality },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const head = Number(await devnet.client.getBlockNumber());
    await expect
      .poll(async () => (await indexer.status()).chains[0], soon)
      .toMatchObject({ state: "live", finalized: head - 2 });
  });
});
