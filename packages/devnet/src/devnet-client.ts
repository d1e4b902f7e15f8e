import { setTimeout as sleep } from "node:timers/promises";
import { multicall3Address } from "@coinslot/protocol";
import {
  type Address,
  createTestClient,
  defineChain,
  type Hash,
  type Hex,
  http,
  type LocalAccount,
  type PublicActions,
  publicActions,
  rpcSchema,
  type TransactionReceipt,
  TransactionReceiptNotFoundError,
  WaitForTransactionReceiptTimeoutError,
  walletActions,
} from "viem";

type ReorgRequest = {
  Method: "anvil_reorg";
  Parameters: [
    depth: number,
    transactions: [
      transaction: Hex | { from: Address; to: Address; data: Hex },
      blockIndex: number,
    ][],
  ];
  ReturnType: null;
};

type SendRequest = {
  Method: "eth_sendTransaction";
  Parameters: [transaction: { from: Address; to?: Address; data?: Hex }];
  ReturnType: Hash;
};

export type DevnetClient = ReturnType<typeof createDevnetClient>;

/**
 * A viem client with test, public and wallet actions for an anvil. `account` signs where an action
 * names no other.
 */
export function createDevnetClient(options: {
  rpcUrl: string;
  chainId: number;
  account: LocalAccount;
}) {
  const chain = defineChain({
    id: options.chainId,
    name: `Devnet ${options.chainId}`,
    nativeCurrency: { name: "Gas", symbol: "GAS", decimals: 18 },
    rpcUrls: { default: { http: [options.rpcUrl] } },
    contracts: { multicall3: { address: multicall3Address } },
  });
  return createTestClient({
    mode: "anvil",
    chain,
    account: options.account,
    transport: http(options.rpcUrl),
    rpcSchema: rpcSchema<[ReorgRequest, SendRequest]>(),
    // The chain is on this machine and mines at once.
    pollingInterval: 20,
    cacheTime: 0,
  })
    .extend(publicActions)
    .extend(walletActions)
    .extend((client) => ({
      waitForTransactionReceipt: ({ hash }: { hash: Hash }) => waitForReceipt(client, hash),
    }));
}

const maxWaitMs = 20_000;

/**
 * Polls for a receipt until there is one. viem's own polls again only at another block. It misses a
 * block that arrives during its check, and a chain that mines on demand may not have another.
 */
async function waitForReceipt(
  client: Pick<PublicActions, "getTransactionReceipt"> & { pollingInterval: number },
  hash: Hash,
): Promise<TransactionReceipt> {
  const deadline = performance.now() + maxWaitMs;
  for (;;) {
    try {
      return await client.getTransactionReceipt({ hash });
    } catch (error) {
      if (!(error instanceof TransactionReceiptNotFoundError)) throw error;
    }
    if (performance.now() > deadline) throw new WaitForTransactionReceiptTimeoutError({ hash });
    await sleep(client.pollingInterval);
  }
}
