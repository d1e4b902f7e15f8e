import { testUsdt0 } from "@coinslot/devnet";
import { zeroAddress } from "viem";
import { describe, expect, it } from "vitest";
import { enginesByDay } from "../testing/engines.ts";
import { changing, errorAnswer, honest, startFaultProxy } from "../testing/fault-proxy.ts";
import { expectExact } from "../testing/oracle.ts";
import {
  startChain,
  startFastIndexer,
  startIndexer,
  startUsedChain,
  usdtOf,
} from "../testing/scene.ts";

const patience = { timeout: 60_000 };

describe.each(enginesByDay)("balances, on $engine", ({ createUrl }) => {
  it("are right after a reorganisation below the start block", async () => {
    const devnet = await startUsedChain();
    const seller = devnet.accounts.seller.address;
    await devnet.mint({ to: seller, amount: 5n });
    await devnet.mint({ to: seller, amount: 7n });
    const head = Number(await devnet.client.getBlockNumber());
    // Its first block may still be replaced, and so may the one before it.
    const tokens = [{ name: "usdt", address: devnet.token, startBlock: head, decimals: 6 }];
    const indexer = await startIndexer({
      rpcUrls: [devnet.rpcUrl],
      database: await createUrl(),
      chain: { tokens },
    });
    const watched = usdtOf(devnet);
    const fromBlock = BigInt(head);
    await expectExact(indexer, devnet, watched, { fromBlock });
    const address = lower(seller);
    expect(await indexer.readBalance({ ...watched, address })).toBe(12n);

    await devnet.reorg({ depth: 4 });
    await devnet.mint({ to: seller, amount: 2n });
    await expectExact(indexer, devnet, watched, { fromBlock });
    expect(await indexer.readBalance({ ...watched, address })).toBe(2n);
  });

  it("ask no endpoint for a block that the index has seen replaced", async () => {
    const devnet = await startUsedChain();
    const seller = devnet.accounts.seller.address;
    await devnet.mint({ to: seller, amount: 5n });
    await devnet.mine(2);
    const head = Number(await devnet.client.getBlockNumber());
    const tokens = [{ name: "usdt", address: devnet.token, startBlock: head - 1, decimals: 6 }];
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { tokens },
    });
    const watched = usdtOf(devnet);
    const fromBlock = BigInt(head - 1);
    await expectExact(indexer, devnet, watched, { fromBlock });
    const question = { ...watched, address: lower(seller) };
    expect(await indexer.readBalance(question)).toBe(5n);
    const calls = () => proxy.requests.flat().filter(({ method }) => method === "eth_call").length;

    await devnet.reorg({ depth: 1 });
    await devnet.mint({ to: devnet.accounts.buyer.address, amount: 2n });
    await expectExact(indexer, devnet, watched, { fromBlock });
    const before = calls();
    expect(await indexer.readBalance(question)).toBe(5n);
    expect(calls() - before).toBe(1);
  });

  it("become right after a node answered from a later state than requested", async () => {
    const devnet = await startUsedChain();
    const seller = devnet.accounts.seller.address;
    await devnet.mint({ to: seller, amount: 5n });
    const head = Number(await devnet.client.getBlockNumber());
    const tokens = [{ name: "usdt", address: devnet.token, startBlock: head, decimals: 6 }];
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { tokens },
    });
    const watched = usdtOf(devnet);
    const question = { ...watched, address: lower(seller) };
    await expect
      .poll(async () => (await indexer.status()).chains[0]?.lagBlocks, { timeout: 20_000 })
      .toBe(0);
    // A request for the newest block gets the state after it, every time, until the next block.
    const { hash: newest } = await devnet.client.getBlock();
    const later = `0x${"9".padStart(64, "0")}`;
    proxy.set(
      changing("eth_call", (answer, { params }) =>
        JSON.stringify(params[1]).includes(newest) ? { ...answer, result: later } : answer,
      ),
    );
    for (let count = 0; count < 3; count++) await indexer.readBalance(question);
    proxy.set(honest);
    await devnet.mint({ to: seller, amount: 2n });
    await expectExact(indexer, devnet, watched, { fromBlock: BigInt(head) });
    // By now it is cached, and no node is asked.
    await devnet.mint({ to: seller, amount: 1n });
    await expectExact(indexer, devnet, watched, { fromBlock: BigInt(head) });
    proxy.set(changing("eth_call", (answer) => errorAnswer(answer, -32000, "missing trie node")));
    expect(await indexer.readBalance(question)).toBe(8n);
  });

  const pruned = (method: string) =>
    changing(method, (answer) => errorAnswer(answer, -32000, "missing trie node"));

  it.each([
    ["makes up the balance of an address", "eth_call", "9".padStart(64, "0"), honest],
    ["makes up a balance alone", "eth_call", "9".padStart(64, "0"), pruned("eth_call")],
    ["denies the token's code before the first block", "eth_getCode", "", honest],
    ["denies the token's code alone", "eth_getCode", "", pruned("eth_getCode")],
  ])("are right after a node that %s tells the truth", async (_, method, word, fault) => {
    const devnet = await startUsedChain();
    const seller = devnet.accounts.seller.address;
    await devnet.mint({ to: seller, amount: 5n });
    const head = Number(await devnet.client.getBlockNumber());
    const tokens = [{ name: "usdt", address: devnet.token, startBlock: head + 1, decimals: 6 }];
    const proxy = await startFaultProxy(devnet.rpcUrl);
    proxy.set(changing(method, (answer) => ({ ...answer, result: `0x${word}` })));
    const second = await startFaultProxy(devnet.rpcUrl);
    second.set(fault);
    await devnet.mint({ to: seller, amount: 3n });
    const indexer = await startIndexer({
      rpcUrls: [proxy.url, second.url],
      database: await createUrl(),
      chain: { tokens },
    });
    const watched = usdtOf(devnet);
    const question = { ...watched, address: lower(seller) };
    const caughtUp = () =>
      expect
        .poll(async () => (await indexer.status()).chains[0]?.tokens[0]?.indexedTo, patience)
        .toBe(Number(head) + 1 + mined);
    let mined = 0;
    await caughtUp();
    for (; mined < 3; await caughtUp()) {
      await indexer.readBalance(question);
      await devnet.mint({ to: seller, amount: 2n });
      mined += 1;
    }
    proxy.set(honest);
    second.set(honest);
    await expectExact(indexer, devnet, watched, { fromBlock: BigInt(head) + 1n });
    expect(await indexer.readBalance(question)).toBe(14n);
  });

  it("need no node where two denied earlier code, although one was silent at the start", async () => {
    const devnet = await startUsedChain();
    const seller = devnet.accounts.seller.address;
    const startBlock = Number(await devnet.client.getBlockNumber()) + 1;
    const token = await devnet.deployMisbehavingToken("honest");
    await devnet.mint({ to: seller, amount: 5n, token });
    const tokens = [{ name: "odd", address: token, startBlock, decimals: 6 }];
    const [proxy, second] = [
      await startFaultProxy(devnet.rpcUrl),
      await startFaultProxy(devnet.rpcUrl),
    ];
    const start = async (database: string) =>
      startFastIndexer({ rpcUrls: [proxy.url, second.url], database, chain: { tokens } });
    const database = await createUrl();
    const watched = { blockchain: "devnet", token: "odd", address: token };
    const question = { ...watched, address: lower(seller) };
    second.cut();
    const indexer = await start(database);
    await expectExact(indexer, devnet, watched);
    proxy.set(pruned("eth_call"));
    second.set(pruned("eth_call"));
    second.mend();
    await expect.poll(() => indexer.readBalance(question).catch(String), patience).toBe(5n);
    await indexer.close();

    proxy.cut();
    second.cut();
    const next = await start(database);
    const problem = async () => (await next.status()).chains[0]?.problem;
    await expect.poll(problem, patience).toContain("No RPC endpoint");
    expect(await next.readBalance(question)).toBe(5n);
  });

  it("are the token's own for the zero address, after mints and burns", async () => {
    const devnet = await startChain();
    const { buyer } = devnet.accounts;
    const indexer = await startIndexer({ rpcUrls: [devnet.rpcUrl], database: await createUrl() });
    await devnet.mint({ to: buyer.address, amount: 1_000n });
    await devnet.client.writeContract({
      account: buyer,
      address: devnet.token,
      abi: testUsdt0.abi,
      functionName: "burn",
      args: [300n],
      gas: 200_000n,
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect(await indexer.readBalance({ ...usdtOf(devnet), address: zeroAddress })).toBe(0n);
  });
});

function lower(address: string): `0x${string}` {
  return `0x${address.slice(2).toLowerCase()}`;
}
