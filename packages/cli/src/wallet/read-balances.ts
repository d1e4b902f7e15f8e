import { createChainClient, createRpcPool } from "@coinslot/chain";
import type { ConfiguredNetwork } from "@coinslot/hosting/environment";
import { type Address, type Network, symbolOf } from "@coinslot/protocol";
import { erc20Abi, type PublicClient } from "viem";
import { readToken } from "../read-token.ts";
import type { Holder } from "./read-holders.ts";

/** A holder's balance of one coin or token. */
export interface WalletBalance {
  role: Holder["role"];
  address: Address;
  network: Network;
  networkName: string;
  /** `undefined`: the native coin. */
  token: Address | undefined;
  symbol: string;
  /** In the smallest unit. */
  amount: bigint;
  decimals: number;
}

const nativeDecimals = 18;

/**
 * All holders' balances on a network: native coin first, then its tokens.
 *
 * @throws when the chain is unreachable
 */
export async function readBalances(options: {
  network: ConfiguredNetwork;
  holders: readonly Holder[];
}): Promise<WalletBalance[]> {
  const { network, holders } = options;
  const { chainId, rpcUrls, symbol } = network;
  const pool = createRpcPool({ chainId, rpcUrls });
  try {
    const client = createChainClient(pool);
    const tokens = await tokensOf(client, network);
    const assets = [{ address: undefined, symbol, decimals: nativeDecimals }, ...tokens];
    const questions = holders.flatMap((holder) => assets.map((asset) => ({ holder, asset })));
    return await Promise.all(
      questions.map(async ({ holder, asset }) => ({
        ...holder,
        network: network.network,
        networkName: network.name,
        token: asset.address,
        symbol: asset.symbol,
        amount: await readBalance(client, { owner: holder.address, token: asset.address }),
        decimals: asset.decimals,
      })),
    );
  } finally {
    pool.close();
  }
}

async function tokensOf(client: PublicClient, { knownToken, tokens }: ConfiguredNetwork) {
  const others = await Promise.all(
    tokens.map(async (token) => {
      const asset = typeof token === "string" ? await readToken(client, token) : token;
      return { address: asset.address, symbol: symbolOf(asset), decimals: asset.decimals };
    }),
  );
  if (knownToken === undefined) return others;
  const { address, name, decimals } = knownToken;
  return [{ address, symbol: name, decimals }, ...others];
}

function readBalance(
  client: PublicClient,
  { owner, token }: { owner: Address; token: Address | undefined },
): Promise<bigint> {
  if (token === undefined) return client.getBalance({ address: owner });
  const read = { abi: erc20Abi, functionName: "balanceOf", args: [owner] } as const;
  return client.readContract({ address: token, ...read });
}
