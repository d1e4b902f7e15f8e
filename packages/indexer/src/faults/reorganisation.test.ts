import { effort } from "@coinslot/devnet/effort";
import { describe, expect, it } from "vitest";
import { enginesByDay } from "../testing/engines.ts";
import { startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { expectExact, readStored } from "../testing/oracle.ts";
import {
  signTransfer,
  startFork,
  startIndexer,
  startUsedChain,
  stepRandomly,
  usdtOf,
} from "../testing/scene.ts";
import { randomOf } from "../testing/seeded-random.ts";
import type { IndexedTransfer } from "../transfer.ts";

describe.each(enginesByDay)("reorganisations, on $engine", ({ engine, createUrl }) => {
  it("are followed at any depth and with any content", async () => {
    const random = randomOf(`random reorganisations on ${engine}`);
    const devnet = await startUsedChain();
    const indexer = await startIndexer({ rpcUrls: [devnet.rpcUrl], database: await createUrl() });
    for (let step = 0; step < 100 * effort; step++) {
      await stepRandomly(devnet, random);
      // Some of them interrupt the previous one.
      if (random.chance(0.1)) await expectExact(indexer, devnet, usdtOf(devnet));
    }
    await expectExact(indexer, devnet, usdtOf(devnet));
  }, 600_000);

  it("end at the chain's own content: to an equal or lower height, back and forth, and during a rollback", async () => {
    const random = randomOf(`to and fro on ${engine}`);
    const a = await startUsedChain();
    const b = await startFork(a, await a.client.getBlockNumber());
    const proxy = await startFaultProxy(a.rpcUrl);
    const seller = a.accounts.seller.address;
    for (let amount = 1n; amount <= 6n; amount++) await a.mint({ to: seller, amount });
    for (let amount = 11n; amount <= 14n; amount++) await b.mint({ to: seller, amount });
    const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(indexer, a, usdtOf(a));
    // Lower, and back to the blocks that were there before.
    proxy.setUpstream(b.rpcUrl);
    await expectExact(indexer, b, usdtOf(b));
    proxy.setUpstream(a.rpcUrl);
    await expectExact(indexer, a, usdtOf(a));
    // Equal heights.
    await b.mint({ to: seller, amount: 15n });
    await b.mint({ to: seller, amount: 16n });
    expect(await b.client.getBlockNumber()).toBe(await a.client.getBlockNumber());
    proxy.setUpstream(b.rpcUrl);
    await expectExact(indexer, b, usdtOf(b));
    // The chain changes at every request, so also between the question for a head and the one for
    // its blocks.
    proxy.set(async ({ forward, reply }) => {
      proxy.setUpstream(random.pick([a, b]).rpcUrl);
      reply(await forward());
    });
    await new Promise((resolve) => setTimeout(resolve, 500));
    proxy.set(async ({ forward, reply }) => reply(await forward()));
    proxy.setUpstream(a.rpcUrl);
    await a.mint({ to: seller, amount: 7n });
    await expectExact(indexer, a, usdtOf(a));
  });

  it("leave a transfer once, at its new position, when they mine it again elsewhere", async () => {
    const devnet = await startUsedChain();
    const { client, accounts } = devnet;
    const indexer = await startIndexer({ rpcUrls: [devnet.rpcUrl], database: await createUrl() });
    const nonce = await client.getTransactionCount({ address: accounts.buyer.address });
    const to = accounts.seller.address;
    const rawTransaction = await signTransfer(devnet, { nonce, to, amount: 5n });
    const hash = await client.sendRawTransaction({ serializedTransaction: rawTransaction });
    await devnet.mine(3);
    await expectExact(indexer, devnet, usdtOf(devnet));
    const [before] = await indexer.readTransactionTransfers({
      ...usdtOf(devnet),
      transactionHash: hash,
    });

    await devnet.reorg({ depth: 4, transactions: [{ rawTransaction, blockIndex: 2 }] });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const after = await indexer.readTransactionTransfers({
      ...usdtOf(devnet),
      transactionHash: hash,
    });
    expect(after).toHaveLength(1);
    expect(after[0]?.blockNumber).toBe((before?.blockNumber ?? 0) + 2);

    const { events } = await indexer.readEvents({
      ...usdtOf(devnet),
      address: `0x${to.slice(2).toLowerCase()}`,
      after: 0,
      limit: 100,
    });
    expect(events.map(({ type, transfer }) => [type, transfer.blockNumber])).toEqual([
      ["transfer", before?.blockNumber],
      ["retraction", before?.blockNumber],
      ["transfer", after[0]?.blockNumber],
    ]);
  });

  it("are detected at the service's start when they came during its downtime", async () => {
    const devnet = await startUsedChain();
    const database = await createUrl();
    const first = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    for (let amount = 1n; amount <= 6n; amount++)
      await devnet.mint({ to: devnet.accounts.seller.address, amount });
    await expectExact(first, devnet, usdtOf(devnet));
    await first.close();
    await devnet.reorg({ depth: 5 });
    const second = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectExact(second, devnet, usdtOf(devnet));
    await second.close();
    // Long enough for the window to be history.
    await devnet.reorg({ depth: 3 });
    await devnet.mine(200);
    const third = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectExact(third, devnet, usdtOf(devnet));
  });

  it("do not stop a chain below finality at one endpoint while another is unreachable", async () => {
    const devnet = await startUsedChain();
    const common = await devnet.client.getBlockNumber();
    // From here on another chain, which forked below what will be final.
    const liar = await startFork(devnet, common);
    const first = await startFaultProxy(devnet.rpcUrl);
    const second = await startFaultProxy(liar.rpcUrl);
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 1n });
    await devnet.mine(finalDepth + 5);
    await liar.mine(2 * finalDepth + 20);
    const rpcUrls = [first.url, second.url];
    second.cut();
    const indexer = await startIndexer({ rpcUrls, database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const chain = async () => (await indexer.status()).chains[0];

    first.cut();
    second.mend();
    await expect
      .poll(async () => (await chain())?.problem, { timeout: 20_000 })
      .toContain("was final as");
    expect(await chain()).toMatchObject({ state: "live" });

    first.mend();
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 2n });
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("are not followed from an endpoint that lags, or is on another fork", async () => {
    const a = await startUsedChain();
    const seller = a.accounts.seller.address;
    const common = await a.client.getBlockNumber();
    const b = await startFork(a, common);
    const first = await startFaultProxy(a.rpcUrl);
    const second = await startFaultProxy(b.rpcUrl);
    for (let amount = 1n; amount <= 5n; amount++) await a.mint({ to: seller, amount });
    for (let amount = 11n; amount <= 13n; amount++) await b.mint({ to: seller, amount });
    const rpcUrls = [first.url, second.url];
    const indexer = await startIndexer({ rpcUrls, database: await createUrl() });
    await expectExact(indexer, a, usdtOf(a));
    const address = lower(seller);
    const { lastId } = await indexer.readEvents({ ...usdtOf(a), address, after: 0, limit: 1_000 });
    const retractions = async () =>
      (
        await indexer.readEvents({ ...usdtOf(a), address, after: lastId, limit: 1_000 })
      ).events.filter(({ type }) => type === "retraction");
    // The first endpoint goes away; the other shows a shorter fork.
    first.cut();
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await retractions()).toEqual([]);
    // It is accepted once it is longer.
    for (let amount = 14n; amount <= 17n; amount++) await b.mint({ to: seller, amount });
    await expectExact(indexer, b, usdtOf(b));
    first.mend();
    for (let amount = 18n; amount <= 20n; amount++) await b.mint({ to: seller, amount });
    for (let amount = 6n; amount <= 20n; amount++) await a.mint({ to: seller, amount });
    await expectExact(indexer, a, usdtOf(a));
  });

  it("never show a reader of pages a final transfer twice, or not at all", async () => {
    const random = randomOf(`pages on ${engine}`);
    const devnet = await startUsedChain(40);
    const indexer = await startIndexer({ rpcUrls: [devnet.rpcUrl], database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const address = lower(devnet.accounts.others[0]?.address ?? "0x");
    for (let walk = 0; walk < 4 * effort; walk++) {
      const final = (await readStored(indexer, usdtOf(devnet))).length;
      const seen: IndexedTransfer[] = [];
      let after: IndexedTransfer | undefined;
      for (;;) {
        const query = {
          ...usdtOf(devnet),
          address,
          sort: "desc",
          limit: 2,
          fromMs: 0,
          after,
        } as const;
        const page = await indexer.readTransfers(query);
        seen.push(...page);
        after = page.at(-1);
        if (after === undefined) break;
        await stepRandomly(devnet, random);
      }
      expect(final).toBeGreaterThan(0);
      // A block may become final between two pages that share its transfers.
      const lowest = seen.find(({ finalized }) => finalized)?.blockNumber ?? 0;
      const open = seen.filter(({ finalized }) => !finalized).map((each) => each.blockNumber);
      const isBelow = ({ blockNumber }: { blockNumber: number }) =>
        blockNumber <= lowest && !open.includes(blockNumber);
      const places = seen
        .filter(isBelow)
        .map(({ blockNumber, logIndex }) => `${blockNumber}-${logIndex}`);
      expect(new Set(places).size).toBe(places.length);
      const expected = (await readStored(indexer, usdtOf(devnet))).filter(
        (each) => (each.from === address || each.to === address) && isBelow(each),
      );
      expect(places).toHaveLength(expected.length);
    }
  });
});

function lower(address: string): `0x${string}` {
  return `0x${address.slice(2).toLowerCase()}`;
}
