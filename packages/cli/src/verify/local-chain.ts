import type { RpcPool } from "@coinslot/chain";
import type { ConfiguredNetwork } from "@coinslot/hosting/environment";
import { isDevelopmentNode, isLoopbackHost } from "@coinslot/inspector";
import type { Address } from "@coinslot/protocol";
import { encodeFunctionData, erc20Abi } from "viem";

/**
 * Returns whether a network is a chain of this machine. A loopback URL alone may be a tunnel to a
 * real chain's node.
 */
export async function isLocalChain(network: ConfiguredNetwork, pool: RpcPool): Promise<boolean> {
  if (!network.rpcUrls.every((url) => isLoopbackHost(new URL(url).hostname))) return false;
  const versions = await Promise.all(
    pool.endpoints.map((node) => node.request({ method: "web3_clientVersion" })),
  );
  return versions.every(isDevelopmentNode);
}

/**
 * Transfers tokens between accounts of a local chain. The node sends it in the holder's name: no
 * key signs, since a fork of a real chain would yield a transaction that is good there, too.
 */
export async function fundOnLocalChain(
  pool: RpcPool,
  transfer: { token: Address; from: Address; to: Address; amount: bigint },
): Promise<void> {
  const { token, from, to, amount } = transfer;
  const args = [to, amount] as const;
  const data = encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args });
  await pool.request({ method: "hardhat_impersonateAccount", params: [from] });
  const params = [{ from, to: token, data }];
  await pool.request({ method: "eth_sendTransaction", params });
}
