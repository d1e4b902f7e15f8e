import { erc20Abi } from "viem";
import { askChain } from "./ask-chain.ts";
import type { BridgeContext } from "./bridge-options.ts";
import { requireEvmAddress } from "./evm-address.ts";

/** Whose balance, and where. */
export interface TargetBalanceRequest {
  /** Key of the chain. */
  targetChain: string;
  /** The token there. */
  token: string;
  owner: string;
}

/**
 * What an account holds on a target chain, in the token's smallest unit. `undefined` where it cannot be asked: no RPC URL
 * was given for the chain, or it is no EVM chain.
 *
 * @throws BridgeError `invalid_token`, `invalid_recipient`, `refused_by_contract`, `rpc_unavailable`
 */
export async function readTargetBalance(
  { chains, connections }: Pick<BridgeContext, "chains" | "connections">,
  request: TargetBalanceRequest,
): Promise<bigint | undefined> {
  const chain = chains.byKey(request.targetChain);
  const client = chain?.type === "evm" ? connections.target(chain) : undefined;
  if (client === undefined) return undefined;
  const address = requireEvmAddress(request.token, "token", "invalid_token");
  const owner = requireEvmAddress(request.owner, "owner", "invalid_recipient");
  return askChain(
    "to tell the balance",
    client.readContract({ address, abi: erc20Abi, functionName: "balanceOf", args: [owner] }),
  );
}
