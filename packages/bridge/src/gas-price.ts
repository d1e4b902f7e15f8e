import { type FeeModel, getChainPreset } from "@coinslot/chain";
import type { PublicClient } from "viem";
import { askChain } from "./ask-chain.ts";

/** What to offer for gas, in wei. */
export type GasPrice =
  | { type: "eip1559"; maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }
  | { type: "legacy"; gasPrice: bigint };

/** Reads what gas costs now, with room for the next blocks. */
export async function readGasPrice(client: PublicClient, chainId: number): Promise<GasPrice> {
  const { feeModel } = getChainPreset(chainId);
  const block = await askChain("the newest block", client.getBlock());
  if (block.baseFeePerGas === null) {
    const gasPrice = await askChain("the gas price", client.getGasPrice());
    return { type: "legacy", gasPrice: (gasPrice * 5n) / 4n };
  }
  const tip = await readTip(client, feeModel);
  // A full block raises the base fee by an eighth: half as much again lasts for three of them.
  const maxFeePerGas = (block.baseFeePerGas * 3n) / 2n + tip;
  return { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas: tip };
}

async function readTip(client: PublicClient, feeModel: FeeModel): Promise<bigint> {
  if (feeModel === "eip1559-without-tip") return 0n;
  return askChain("the priority fee", client.estimateMaxPriorityFeePerGas());
}

/** The most that a unit of gas can cost. */
export function mostPerGas(price: GasPrice): bigint {
  return price.type === "legacy" ? price.gasPrice : price.maxFeePerGas;
}
