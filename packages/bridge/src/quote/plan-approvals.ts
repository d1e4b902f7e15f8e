import { type Address, encodeFunctionData, erc20Abi, type PublicClient } from "viem";
import { BridgeError } from "../bridge-error.ts";
import { askChain } from "../chains/ask-chain.ts";
import { oftAbi } from "../chains/oft-abi.ts";
import type { Step } from "./estimate-gas.ts";

/**
 * The missing approvals until `contract` may take exactly `amount`, in order; none where it needs
 * none.
 *
 * @throws BridgeError `refused_by_contract`, `rpc_unavailable`
 */
export async function planApprovals(
  client: PublicClient,
  options: { contract: Address; token: Address; owner: Address; amount: bigint },
): Promise<Step[]> {
  const { contract, token, owner, amount } = options;
  const [isRequired, allowance] = await Promise.all([
    askChain(
      "its need of an allowance",
      client.readContract({ address: contract, abi: oftAbi, functionName: "approvalRequired" }),
    ),
    askChain(
      "the allowance",
      client.readContract({
        address: token,
        abi: erc20Abi,
        functionName: "allowance",
        args: [owner, contract],
      }),
    ),
  ]);
  if (!isRequired || allowance >= amount) return [];
  const approval = approve(amount);
  if (allowance === 0n || (await canBeMade(approval))) return [approval];
  return [approve(0n), approval];

  function approve(value: bigint): Step {
    const call = { abi: erc20Abi, functionName: "approve", args: [contract, value] } as const;
    return { to: token, value: 0n, data: encodeFunctionData(call) };
  }

  // USDT on Ethereum refuses to change an allowance that is not zero to another that is not.
  async function canBeMade(step: Step): Promise<boolean> {
    try {
      await askChain("an approval", client.call({ account: owner, ...step }));
      return true;
    } catch (error) {
      if (error instanceof BridgeError && error.code === "refused_by_contract") return false;
      throw error;
    }
  }
}
