import {
  createTestClient,
  defineChain,
  http,
  type LocalAccount,
  publicActions,
  rpcSchema,
  walletActions,
} from "viem";

/** Where Multicall3 stands on nearly every chain, and on a devnet. */
export const multicall3Address = "0xcA11bde05977b3631167028862bE2a173976CA11";

type ReorgRequest = {
  Method: "anvil_reorg";
  Parameters: [depth: number, transactions: [rawTransaction: `0x${string}`, blockIndex: number][]];
  ReturnType: null;
};

export type DevnetClient = ReturnType<typeof createDevnetClient>;

/**
 * A viem client with test, public and wallet actions for an anvil.
 * `account` signs where an action names no other.
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
    rpcSchema: rpcSchema<[ReorgRequest]>(),
    // The chain is on this machine and mines at once.
    pollingInterval: 20,
    cacheTime: 0,
  })
    .extend(publicActions)
    .extend(walletActions);
}
