import { setTimeout as sleep } from "node:timers/promises";
import type { Devnet } from "@coinslot/devnet";
import { eip3009Abi, transferTypedData } from "@coinslot/protocol";
import { encodeFunctionData, type Hex, keccak256, parseSignature } from "viem";
import { type Purchase, price, tokenDomain } from "./purchase.ts";
import type { Random } from "./seeded-random.ts";

/** A chain that mines on its own, with other senders. */
export interface LiveChain extends MovingChain {
  /** Carries out a purchase's plan. */
  interfere(purchase: Purchase): Promise<void>;
}

/** A chain that mines on its own, and reorganises. */
export interface MovingChain {
  /**
   * Replaces the last blocks, as soon as the lowest of them has transactions; some of those are
   * lost.
   */
  reorganise(): void;
  /** Forgets a reorganisation that has not begun. */
  calm(): void;
  /** Number of the chain's reorganisations. */
  reorganisations(): number;
  /** Hashes of all transactions that stood in a block which a reorganisation replaced. */
  readonly replaced: ReadonlySet<Hex>;
  /** Stops mining. */
  stop(): Promise<void>;
}

/** Deepest reorganisation: less than the network's finality. */
const deepest = 3;
const gas = 200_000n;

const ignore = () => undefined;

/** Begins to mine: a block every 50 to 400 ms, and 1.5 s in 2 of 100 cases. */
export function startMovingChain({
  devnet,
  random,
}: {
  devnet: Devnet;
  random: Random;
}): MovingChain {
  const { client } = devnet;
  const replaced = new Set<Hex>();
  let wishedDepth: number | undefined;
  let reorganisations = 0;
  let isStopped = false;
  const mining = mine();

  async function mine(): Promise<void> {
    let sinceTransactions = Number.POSITIVE_INFINITY;
    while (!isStopped) {
      await sleep(random.chance(0.02) ? 1_500 : random.between(50, 400));
      await devnet.mine();
      const { transactions } = await client.getBlock();
      sinceTransactions = transactions.length > 0 ? 1 : sinceTransactions + 1;
      if (wishedDepth === undefined || sinceTransactions !== wishedDepth) continue;
      await reorganise(wishedDepth);
      wishedDepth = undefined;
      reorganisations += 1;
    }
  }

  async function reorganise(depth: number): Promise<void> {
    const head = await client.getBlockNumber();
    const lost: Hex[] = [];
    for (let number = head - BigInt(depth) + 1n; number <= head; number += 1n) {
      const { transactions } = await client.getBlock({ blockNumber: number });
      for (const hash of transactions) {
        replaced.add(hash);
        lost.push(await readRaw(hash));
      }
    }
    // Leading transactions of a block may lead again; those after a lost one could not.
    const kept = lost.slice(0, random.between(0, lost.length));
    const blockIndex = random.between(0, depth - 1);
    await devnet.reorg({
      depth,
      transactions: kept.map((rawTransaction) => ({ rawTransaction, blockIndex })),
    });
  }

  function readRaw(hash: Hex): Promise<Hex> {
    return client.request<{
      Method: "eth_getRawTransactionByHash";
      Parameters: [Hex];
      ReturnType: Hex;
    }>({ method: "eth_getRawTransactionByHash", params: [hash] });
  }

  return {
    replaced,
    reorganise() {
      wishedDepth = random.between(1, deepest);
    },
    calm() {
      wishedDepth = undefined;
    },
    reorganisations: () => reorganisations,
    async stop() {
      isStopped = true;
      await mining;
    },
  };
}

/** Begins to mine, with other senders. */
export function startLiveChain(options: { devnet: Devnet; random: Random }): LiveChain {
  const { devnet } = options;
  const { client, token } = devnet;
  const stranger = devnet.accounts.deployer.address;
  const moving = startMovingChain(options);
  let last: Promise<void> = Promise.resolve();

  /**
   * Broadcasts without a check of success, one call after the other: the node gives one nonce to
   * two concurrent callers. A reorganisation may come in between.
   */
  function send(data: Hex): Promise<void> {
    const sent = last.then(() =>
      client.sendTransaction({ account: stranger, to: token, data, gas }),
    );
    last = sent.then(ignore, ignore);
    return last;
  }

  async function drain({ payer, authorization }: Purchase): Promise<void> {
    const spending = {
      ...authorization,
      to: devnet.accounts.deployer.address,
      value: price,
      nonce: keccak256(authorization.nonce),
    };
    const signature = await payer.signTypedData(
      transferTypedData({
        authorization: spending,
        network: devnet.network,
        asset: token,
        domain: tokenDomain,
      }),
    );
    await send(encodeTransfer(spending, signature));
  }

  async function cancel({ payer, authorization: { nonce } }: Purchase): Promise<void> {
    const signature = await payer.signTypedData({
      domain: { ...tokenDomain, chainId: devnet.chainId, verifyingContract: token },
      types: {
        CancelAuthorization: [
          { name: "authorizer", type: "address" },
          { name: "nonce", type: "bytes32" },
        ],
      },
      primaryType: "CancelAuthorization",
      message: { authorizer: payer.address, nonce },
    });
    const args = [payer.address, nonce, ...split(signature)] as const;
    await send(encodeFunctionData({ abi: eip3009Abi, functionName: "cancelAuthorization", args }));
  }

  return {
    ...moving,
    async interfere(purchase) {
      switch (purchase.interference) {
        case "none":
          return;
        case "submitted":
          await send(encodeTransfer(purchase.authorization, purchase.signature));
          return;
        case "cancelled":
          return cancel(purchase);
        case "drained":
          return drain(purchase);
      }
    },
  };
}

function encodeTransfer(authorization: Purchase["authorization"], signature: Hex): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  return encodeFunctionData({
    abi: eip3009Abi,
    functionName: "transferWithAuthorization",
    args: [from, to, value, validAfter, validBefore, nonce, ...split(signature)],
  });
}

function split(signature: Hex): readonly [v: number, r: Hex, s: Hex] {
  const { r, s, yParity } = parseSignature(signature);
  return [yParity + 27, r, s];
}
