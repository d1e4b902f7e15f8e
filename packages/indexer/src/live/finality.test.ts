import { numberToHex } from "viem";
import { describe, expect, it } from "vitest";
import { enginesByDay } from "../testing/engines.ts";
import { changing, errorAnswer, startFaultProxy } from "../testing/fault-proxy.ts";
import { expectExact } from "../testing/oracle.ts";
import { startChain, startIndexer, usdtOf } from "../testing/scene.ts";

/** Depth alone would call a block final that has two on top. */
const finality = { finalizedTag: true, depth: 2 };
/** The state of the chain's head is written once a second. */
const soon = { timeout: 60_000 };

describe.each(enginesByDay)("finality, on $engine", ({ createUrl }) => {
  it("is the node's finalized tag: above it any reorganisation is followed", async () => {
    const devnet = await startChain();
    const { seller } = devnet.accounts;
    for (let amount = 1n; amount <= 12n; amount++)
      await devnet.mint({ to: seller.address, amount });
    const head = Number(await devnet.client.getBlockNumber());
    const proxy = await startFaultProxy(devnet.rpcUrl);
    await tagFinalized(head - 10);
    const indexer = await startIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { finality },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect((await indexer.status()).chains[0]).toMatchObject({ finalized: head - 10 });
    await expect.poll(finalBlocks, soon).toEqual([head - 10, head - 11]);

    await devnet.reorg({ depth: 10 });
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect((await indexer.status()).chains[0]).toMatchObject({
      state: "live",
      finalized: head - 10,
    });

    await devnet.mint({ to: seller.address, amount: 50n });
    await tagFinalized(head + 1);
    await expect.poll(finalBlocks, soon).toEqual([head + 1, head - 10, head - 11]);

    /** The node's finalized block from now on. */
    async function tagFinalized(number: number): Promise<void> {
      const block = await devnet.client.getBlock({ blockNumber: BigInt(number) });
      const { hash, parentHash } = block;
      const numbers = { number: numberToHex(number), timestamp: numberToHex(block.timestamp) };
      proxy.set(
        changing("eth_getBlockByNumber", (answer, { params: [tag] }) =>
          tag === "finalized" ? { ...answer, result: { hash, parentHash, ...numbers } } : answer,
        ),
      );
    }

    async function finalBlocks(): Promise<number[]> {
      const query = { sort: "desc", limit: 100, fromMs: 0 } as const;
      const transfers = await indexer.readTransfers({
        ...usdtOf(devnet),
        ...query,
        address: seller.address,
      });
      return transfers.flatMap(({ blockNumber, finalized }) => (finalized ? [blockNumber] : []));
    }
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
