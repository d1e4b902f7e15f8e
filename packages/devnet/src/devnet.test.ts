import { erc20Abi, parseEther } from "viem";
import { afterEach, describe, expect, it } from "vitest";
import { devSeedPhrase } from "./accounts.ts";
import { type Devnet, type DevnetOptions, startDevnet } from "./devnet.ts";
import { runningCommands } from "./running-commands.ts";

const started: Devnet[] = [];

async function start(options?: DevnetOptions): Promise<Devnet> {
  const devnet = await startDevnet(options);
  started.push(devnet);
  return devnet;
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((devnet) => devnet.stop()));
});

/** A chain id that no other test, and no other user of this machine, is likely to have. */
const someChainId = () => 1_000_000 + Math.floor(Math.random() * 1e9);

function balanceOf({ client, token }: Devnet, account: `0x${string}`): Promise<bigint> {
  return client.readContract({
    address: token,
    abi: erc20Abi,
    functionName: "balanceOf",
    args: [account],
  });
}

describe("startDevnet", () => {
  it("starts Plasma by default, with USDT0 at its real address", async () => {
    const devnet = await start();
    expect(devnet).toMatchObject({ chainId: 9745, network: "eip155:9745" });
    expect(await devnet.client.getChainId()).toBe(9745);
    expect(devnet.token).toBe("0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb");
  });

  it("starts any other chain, Stable with USDT0 at its real address too", async () => {
    const stable = await start({ chainId: 988 });
    expect(stable.token).toBe("0x779Ded0c9e1022225f8E0630b35a9b54bE713736");
    const other = await start({ chainId: 31337 });
    expect(other.network).toBe("eip155:31337");
    const token = { address: other.token, abi: erc20Abi } as const;
    expect(await other.client.readContract({ ...token, functionName: "symbol" })).toBe("USDT0");
  });

  it("gives each account gas money and no tokens", async () => {
    const devnet = await start({ accountCount: 6 });
    const { deployer, relayer, seller, buyer, others } = devnet.accounts;
    expect(others).toHaveLength(2);
    expect(deployer.address).toBe("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    expect(devSeedPhrase.split(" ")).toHaveLength(12);
    for (const { address } of [relayer, seller, buyer, ...others]) {
      expect(await devnet.client.getBalance({ address })).toBe(parseEther("10000"));
      expect(await balanceOf(devnet, address)).toBe(0n);
    }
    await expect(startDevnet({ accountCount: 3 })).rejects.toThrow("at least 4 accounts");
  });

  it("mints in blocks of their own, one after another", async () => {
    const { accounts, client, token, mint, mintInBlocks } = await start();
    const [first, second] = [accounts.buyer.address, accounts.seller.address];
    const before = Number(await client.getBlockNumber());
    const mints = [first, second, first].map((to, index) => ({ to, amount: BigInt(index) }));
    await mintInBlocks(mints);
    await mint({ to: second, amount: 9n });
    const logs = await client.getLogs({
      address: token,
      event: erc20Abi[1],
      fromBlock: BigInt(before + 1),
    });
    const seen = logs.map(({ blockNumber, args: { to, value } }) => [
      Number(blockNumber) - before,
      to,
      value,
    ]);
    expect(seen).toEqual([
      [1, first, 0n],
      [2, second, 1n],
      [3, first, 2n],
      [4, second, 9n],
    ]);
  });

  it("mints and deploys for many concurrent callers", async () => {
    const devnet = await start();
    const to = devnet.accounts.buyer.address;
    const [token] = await Promise.all([
      devnet.deployToken({ name: "Gold", version: "2", symbol: "XAU", decimals: 8 }),
      ...Array.from({ length: 20 }, (_, index) => devnet.mint({ to, amount: BigInt(index) })),
    ]);
    expect(await balanceOf(devnet, to)).toBe(190n);
    await devnet.mint({ to, amount: 5n, token });
    expect(await balanceOf({ ...devnet, token }, to)).toBe(5n);
    const { domain } = await devnet.client.getEip712Domain({ address: token });
    expect(domain).toMatchObject({ name: "Gold", version: "2", verifyingContract: token });
  });

  it("keeps two devnets apart", async () => {
    const [first, second] = await Promise.all([start(), start()]);
    expect(first.rpcUrl).not.toBe(second.rpcUrl);
    const to = first.accounts.buyer.address;
    await first.mint({ to, amount: 1n });
    expect(await balanceOf(first, to)).toBe(1n);
    expect(await balanceOf(second, to)).toBe(0n);
  });

  it("leaves no process behind when stopped, and may be stopped twice", async () => {
    const chainId = someChainId();
    const devnet = await start({ chainId });
    expect(runningCommands(`${chainId}`)).not.toEqual([]);
    await devnet.stop();
    await devnet.stop();
    await expect.poll(() => runningCommands(`${chainId}`), { timeout: 20_000 }).toEqual([]);
  });

  it("listens on the configured address", async () => {
    const { rpcUrl, client } = await start({ host: "127.0.0.2" });
    expect(new URL(rpcUrl).hostname).toBe("127.0.0.2");
    expect(await client.getChainId()).toBe(9745);
    await expect(fetch(rpcUrl.replace("127.0.0.2", "127.0.0.1"))).rejects.toThrow();
  });

  it("rejects, and leaves no process behind, when the port is taken", async () => {
    const { rpcUrl } = await start();
    const chainId = someChainId();
    await expect(startDevnet({ chainId, port: Number(new URL(rpcUrl).port) })).rejects.toThrow(
      "Anvil exited",
    );
    await expect.poll(() => runningCommands(`${chainId}`), { timeout: 20_000 }).toEqual([]);
  });
});

describe("the devnet's time", () => {
  it("mines at once by default, and only on request after setAutomine(false)", async () => {
    const { client, accounts, setAutomine, mine } = await start();
    await setAutomine(false);
    const before = await client.getBlockNumber();
    const hash = await client.sendTransaction({ to: accounts.buyer.address, value: 1n });
    expect(await client.getBlockNumber()).toBe(before);
    await mine(3);
    expect(await client.getBlockNumber()).toBe(before + 3n);
    expect((await client.getTransactionReceipt({ hash })).blockNumber).toBe(before + 1n);
  });

  it("mines at intervals with a block time", async () => {
    const { client, accounts, setIntervalMining } = await start({ blockTimeSeconds: 1 });
    const before = await client.getBlockNumber();
    const hash = await client.sendTransaction({ to: accounts.buyer.address, value: 1n });
    const { blockNumber } = await client.waitForTransactionReceipt({ hash });
    expect(blockNumber).toBeGreaterThan(before);
    // Blocks come without any transaction.
    await expect
      .poll(() => client.getBlockNumber(), { timeout: 20_000 })
      .toBeGreaterThan(blockNumber + 1n);
    await setIntervalMining(0);
  });

  it("stays close to the clock while blocks are mined quickly", async () => {
    const { client, mine } = await start();
    await mine(100);
    const { timestamp } = await client.getBlock();
    expect(Math.abs(Number(timestamp) - Date.now() / 1000)).toBeLessThan(5);
  });

  it("returns to a snapshot", async () => {
    const devnet = await start();
    const to = devnet.accounts.buyer.address;
    const id = await devnet.snapshot();
    await devnet.mint({ to, amount: 1n });
    await devnet.revert(id);
    expect(await balanceOf(devnet, to)).toBe(0n);
  });
});

describe("a devnet reorganisation", () => {
  it("replaces blocks by empty ones, and drops their transactions", async () => {
    const devnet = await start();
    const { client, accounts, mine, reorg } = devnet;
    const to = accounts.buyer.address;
    await mine();
    const kept = await client.getBlock();
    const hash = await devnet.mint({ to, amount: 1n });
    await mine(2);
    const replaced = await client.getBlock();

    await reorg({ depth: 3 });
    const head = await client.getBlock();
    expect(head.number).toBe(replaced.number);
    expect(head.hash).not.toBe(replaced.hash);
    expect((await client.getBlock({ blockNumber: kept.number })).hash).toBe(kept.hash);
    expect(await balanceOf(devnet, to)).toBe(0n);
    await expect(client.getTransactionReceipt({ hash })).rejects.toThrow("could not be found");
    await expect(client.getTransaction({ hash })).rejects.toThrow("could not be found");
  });

  it("makes different blocks each time, and keeps the token and Multicall3", async () => {
    const { client, mine, reorg, token, multicall3 } = await start();
    await mine(2);
    const hashes = new Set<string>();
    for (let round = 0; round < 5; round++) {
      await reorg({ depth: 2 });
      hashes.add((await client.getBlock()).hash);
    }
    expect(hashes.size).toBe(5);
    expect(await client.getCode({ address: token })).toBeDefined();
    expect(await client.getCode({ address: multicall3 })).toBeDefined();
  });

  it("can mine a transaction again, in another block", async () => {
    const { client, accounts, mine, reorg } = await start();
    const request = await client.prepareTransactionRequest({
      to: accounts.buyer.address,
      value: 1n,
    });
    const rawTransaction = await client.signTransaction(request);
    const hash = await client.sendRawTransaction({ serializedTransaction: rawTransaction });
    const first = await client.waitForTransactionReceipt({ hash });
    await mine(2);
    await reorg({ depth: 3, transactions: [{ rawTransaction, blockIndex: 1 }] });
    const second = await client.getTransactionReceipt({ hash });
    expect(second.blockNumber).toBe(first.blockNumber + 1n);
    expect(second.blockHash).not.toBe(first.blockHash);
  });
});
