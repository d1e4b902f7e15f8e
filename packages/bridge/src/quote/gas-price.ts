import { type FeeModel, getChainPreset } from "@coinslot/chain";
import type { PublicClient } from "viem";
import { askChain } from "../chains/ask-chain.ts";

/** Gas price to offer, in wei. */
export type GasPrice =
  | { type: "eip1559"; maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }
  | { type: "legacy"; gasPrice: bigint };

/** The price of gas now. */
export interface GasQuote {
  /** With room for the next blocks. */
  gasPrice: GasPrice;
  /** The lowest price per unit of gas that the next block may still take. */
  minPerGas: bigint;
}

/** Reads the current gas price. */
export async function readGasPrice(client: PublicClient, chainId: number): Promise<GasQuote> {
  const { feeModel } = getChainPreset(chainId);
  const block = await askChain("the newest block", client.getBlock());
  if (block.baseFeePerGas === null) {
    const gasPrice = await askChain("the gas price", client.getGasPrice());
    return { gasPrice: { type: "legacy", gasPrice: (gasPrice * 5n) / 4n }, minPerGas: gasPrice };
  }
  const tip = await readTip(client, feeModel);
  const { baseFeePerGas } = block;
  // A full block raises the base fee by an eighth: half as much again lasts for three of them.
  const maxFeePerGas = (baseFeePerGas * 3n) / 2n + tip;
  return {
    gasPrice: { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas: tip },
    minPerGas: (baseFeePerGas * 9n) / 8n + tip,
  };
}

async function readTip(client: PublicClient, feeModel: FeeModel): Promise<bigint> {
  if (feeModel === "eip1559-without-tip") return 0n;
  return askChain("the priority fee", client.estimateMaxPriorityFeePerGas());
}

/** The most that a unit of gas can cost. */
export function maxPerGas(price: GasPrice): bigint {
  return price.type === "legacy" ? price.gasPrice : price.maxFeePerGas;
}

/** The same price, with less room for the next blocks. */
export function lowerTo(perGas: bigint, price: GasPrice): GasPrice {
  return price.type === "legacy"
    ? { ...price, gasPrice: perGas }
    : { ...price, maxFeePerGas: perGas };
}
