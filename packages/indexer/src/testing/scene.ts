import { type Clock, systemClock } from "@coinslot/chain";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { type Address, encodeFunctionData, erc20Abi, type Hex } from "viem";
import { onTestFinished } from "vitest";
import { devnetChain } from "../chains/indexer-chain.ts";
import type { ChainOptions } from "../configuration.ts";
import { createIndexer, type IndexerOptions } from "../create-indexer.ts";
import type { Indexer } from "../indexer.ts";
import { finalDepth } from "./final-depth.ts";
import type { Random } from "./seeded-random.ts";

/** Starts a chain that ends with the test. */
export async function startChain(): Promise<Devnet> {
  const devnet = await startDevnet();
  onTestFinished(() => devnet.stop());
  return devnet;
}

/** The chain's USDT as the indexer knows it. */
export function usdtOf({ token }: Devnet) {
  return { blockchain: "devnet", token: "usdt", address: token };
}

type SceneOptions = {
  rpcUrls: string[];
  database: string;
  chain?: Partial<ChainOptions>;
} & Partial<Omit<IndexerOptions, "chains">>;

const speed = 5;

/**
 * A clock by which pauses are over in a fifth of the time: the rest of an endpoint that failed, and
 * back-off. The limits of requests are real time, which a busy machine needs: 3 s for the first one
 * to an endpoint, and `requestTimeoutMs`.
 */
export function createFastClock(requestTimeoutMs: number): Clock {
  const isLimit = (ms: number) => ms === 3_000 || ms === requestTimeoutMs;
  return {
    now: () => speed * systemClock.now(),
    setTimer: (run, ms) => systemClock.setTimer(run, isLimit(ms) ? ms : ms / speed),
  };
}

/** As `startIndexer`, on a fast clock; `verifyAfterMs` and `requestTimeoutMs` are real time. */
export function startFastIndexer(options: SceneOptions): Promise<Indexer> {
  const { requestTimeoutMs = 3_000, verifyAfterMs = 200, ...chain } = options.chain ?? {};
  return startIndexer({
    clock: createFastClock(requestTimeoutMs),
    leaseMs: 3_000 * speed,
    ...options,
    chain: {
      pollIntervalMs: 20 * speed,
      requestTimeoutMs,
      verifyAfterMs: Math.min(verifyAfterMs * speed, 3_600_000),
      ...chain,
    },
  });
}

/** Starts an indexer of a devnet that ends with the test. */
export async function startIndexer(options: SceneOptions): Promise<Indexer> {
  const { rpcUrls, chain, ...rest } = options;
  const indexer = createIndexer({
    chains: [
      devnetChain({
        rpcUrls,
        pollIntervalMs: 20,
        requestTimeoutMs: 3_000,
        verifyAfterMs: 200,
        finality: { depth: finalDepth },
        ...chain,
      }),
    ],
    // Long enough for a busy machine, which otherwise loses it.
    leaseMs: 3_000,
    ...rest,
  });
  onTestFinished(() => indexer.close());
  await indexer.start();
  return indexer;
}

/** A signed transfer of the buyer's tokens that waits to be mined in a reorganisation. */
export async function signTransfer(
  { client, accounts, token, chainId }: Devnet,
  { nonce, to, amount }: { nonce: number; to: Address; amount: bigint },
): Promise<Hex> {
  return accounts.buyer.signTransaction({
    type: "eip1559",
    chainId,
    nonce,
    to: token,
    data: encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args: [to, amount] }),
    gas: 200_000n,
    maxFeePerGas: 2n * (await client.getGasPrice()) + 1_000_000_000n,
    maxPriorityFeePerGas: 0n,
  });
}

/**
 * One random step of a chain: full and empty blocks, and reorganisations of any depth up to
 * `deepest`.
 */
export async function stepRandomly(
  devnet: Devnet,
  random: Random,
  { deepest = finalDepth - 1, reorgChance = 0.4 } = {},
): Promise<void> {
  const { client, accounts } = devnet;
  const recipients = accounts.others.slice(0, 4).map(({ address }) => address);
  const someone = () =>
    recipients[random.between(0, recipients.length - 1)] ?? accounts.seller.address;
  if (!random.chance(reorgChance)) {
    for (let count = random.between(1, 3); count > 0; count--) {
      if (random.chance(0.3)) await devnet.mine(random.between(1, 3));
      else await devnet.mint({ to: someone(), amount: BigInt(random.between(0, 1_000)) });
    }
    return;
  }
  const head = await client.getBlockNumber();
  const depth = random.between(1, deepest);
  const first = await client.getTransactionCount({
    address: accounts.buyer.address,
    blockNumber: head - BigInt(depth),
  });
  const transactions: { rawTransaction: Hex; blockIndex: number }[] = [];
  let blockIndex = 0;
  for (let nonce = first; random.chance(0.6) && nonce < first + 8; nonce++) {
    const rawTransaction = await signTransfer(devnet, { nonce, to: someone(), amount: 1n });
    blockIndex = random.between(blockIndex, depth - 1);
    transactions.push({ rawTransaction, blockIndex });
  }
  await devnet.reorg({ depth, transactions });
}

/** A chain with tokens in the buyer's hands, some history, and nothing that may be taken away. */
export async function startUsedChain(blocks = 12): Promise<Devnet> {
  const devnet = await startChain();
  const { buyer, others } = devnet.accounts;
  await devnet.mint({ to: buyer.address, amount: 1_000_000n });
  await devnet.mintInBlocks(
    Array.from({ length: blocks }, (_, index) => ({
      to: others[index % 4]?.address ?? buyer.address,
      amount: BigInt(index),
    })),
  );
  await devnet.mine(finalDepth);
  return devnet;
}

/** Another chain with the same past: up to `block` it is the same, and from there on its own. */
export async function startFork(of: Devnet, block: bigint): Promise<Devnet> {
  const fork = await startChain();
  await fork.client.reset({ jsonRpcUrl: of.rpcUrl, blockNumber: block });
  return fork;
}
