import { type BridgeChain, bridgeChainSchema, type EvmBridgeChain } from "./bridge-chain.ts";
import { usdt0Chains } from "./usdt0-chains.ts";

/** The chains that a bridge knows. */
export interface ChainList {
  all: readonly BridgeChain[];
  byKey(key: string): BridgeChain | undefined;
  byEid(eid: number): BridgeChain | undefined;
  byChainId(chainId: number): EvmBridgeChain | undefined;
}

/**
 * The checked-in table and further chains; one of the same key takes the place of the table's. Adds
 * the faults of the further chains to `problems`.
 */
export function createChainList(further: readonly unknown[], problems: string[]): ChainList {
  const chains = new Map(usdt0Chains.map((chain) => [chain.key, chain]));
  for (const [index, row] of further.entries()) {
    const parsed = bridgeChainSchema.safeParse(row);
    if (parsed.success) chains.set(parsed.data.key, parsed.data);
    else {
      const issues = parsed.error.issues.map(({ path, message }) =>
        [...path.map(String), message].join(": "),
      );
      problems.push(`chains[${index}]: ${issues.join(", ")}`);
    }
  }
  const all = [...chains.values()];
  for (const eid of findRepeated(all.map((chain) => chain.eid))) {
    problems.push(`two chains have the endpoint id ${eid}`);
  }
  const evm = all.filter((chain) => chain.type === "evm");
  for (const chainId of findRepeated(evm.map((chain) => chain.chainId))) {
    problems.push(`two chains have the chain id ${chainId}`);
  }
  return {
    all,
    byKey: (key) => chains.get(key),
    byEid: (eid) => all.find((chain) => chain.eid === eid),
    byChainId: (chainId) => evm.find((chain) => chain.chainId === chainId),
  };
}

function findRepeated(numbers: readonly number[]): Set<number> {
  return new Set(numbers.filter((number, index) => numbers.indexOf(number) !== index));
}
