import { type Address, erc20Abi, type PublicClient } from "viem";
import { requireEvmAddress } from "../addresses/evm-address.ts";
import { BridgeError } from "../bridge-error.ts";
import type { BridgeContext } from "../bridge-options.ts";
import { askChain } from "./ask-chain.ts";

/** A balance to read on a target chain. */
export interface TargetBalanceRequest {
  /** Key of the chain. */
  targetChain: string;
  /** The token there. */
  token: string;
  owner: string;
  /** A block of the target chain that the node must have. Default: the newest block of the node. */
  notBefore?: bigint | undefined;
}

/**
 * An account's balance on a target chain, in the token's smallest unit. `undefined` where no RPC
 * URL was given for the chain, or it is no EVM chain.
 *
 * The highest answer of its nodes counts. A node that is behind, or lies, would otherwise cause a
 * transfer of tokens that are there.
 *
 * @throws BridgeError `invalid_token`, `invalid_recipient`, `refused_by_contract`,
 * `rpc_unavailable`; the last one also while no endpoint has the required block
 */
export async function readTargetBalance(
  { chains, connections }: Pick<BridgeContext, "chains" | "connections">,
  request: TargetBalanceRequest,
): Promise<bigint | undefined> {
  const chain = chains.byKey(request.targetChain);
  const connection = chain?.type === "evm" ? connections.target(chain) : undefined;
  if (connection === undefined) return undefined;
  const address = requireEvmAddress(request.token, "token", "invalid_token");
  const owner = requireEvmAddress(request.owner, "owner", "invalid_recipient");
  const held = { address, owner, targetChain: request.targetChain, notBefore: request.notBefore };
  const answers = await Promise.allSettled(
    connection.nodes.map(({ client }) => readBalance(client, held)),
  );
  const balances = answers.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const [highest] = balances.toSorted((a, b) => (a < b ? 1 : -1));
  if (highest !== undefined) return highest;
  const [failure] = answers.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
  throw failure;
}

async function readBalance(
  client: PublicClient,
  held: { address: Address; owner: Address; targetChain: string; notBefore: bigint | undefined },
): Promise<bigint> {
  const { address, owner, targetChain, notBefore } = held;
  const call = { address, abi: erc20Abi, functionName: "balanceOf", args: [owner] } as const;
  if (notBefore === undefined) {
    return askChain("the balance", client.readContract(call));
  }
  // Behind one URL there may be several nodes. A node has no balance at a block that it lacks.
  const newest = client.getBlockNumber({ cacheTime: 0 });
  const blockNumber = await askChain("the newest block of the target chain", newest);
  if (blockNumber < notBefore) {
    const text = `The RPC endpoint of ${targetChain} is at block ${blockNumber}, behind ${notBefore}`;
    throw new BridgeError("rpc_unavailable", text);
  }
  return askChain("the balance", client.readContract({ ...call, blockNumber }));
}
