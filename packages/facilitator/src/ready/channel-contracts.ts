import type { RpcCall, RpcRequester } from "@coinslot/chain";
import {
  type Address,
  channelContracts,
  channelDomain,
  channelNeeds,
  channelSettlementAbi,
  channelTypeHashes,
  type Hex,
  isSameAddress,
  multicall3Address,
} from "@coinslot/protocol";
import { decodeFunctionResult, encodeFunctionData } from "viem";
import { askCalls } from "../token/ask-calls.ts";

/** Contracts that payment channels use, by name, in the order of a report. */
const contracts = {
  ...channelContracts,
  ...channelNeeds,
  multicall3: multicall3Address,
} as const satisfies Record<string, Address>;

const typeHashNames = [
  "CHANNEL_CONFIG_TYPEHASH",
  "VOUCHER_TYPEHASH",
  "REFUND_TYPEHASH",
  "CLAIM_ENTRY_TYPEHASH",
  "CLAIM_BATCH_TYPEHASH",
] as const satisfies readonly (keyof typeof channelTypeHashes)[];

/** A contract that payment channels use. */
type ContractName = keyof typeof contracts;
const contractNames: readonly ContractName[] = [
  "settlement",
  "erc3009Collector",
  "permit2Collector",
  "permit2",
  "create2Deployer",
  "multicall3",
];

/** A chain's part of what payment channels (`batch-settlement`) need. */
export interface ChannelContracts {
  /** Contracts that the chain has, at their usual addresses. */
  present: ReadonlySet<ContractName>;
  /**
   * Differences of the escrow from the published one: "domain", or names of type hashes. Empty
   * where there is none.
   */
  differences: readonly string[];
  /** EIP-1153: without it the escrow takes no deposit and pays no claim. */
  hasTransientStorage: boolean;
}

/** Code that stores 1 in transient storage, loads it and returns it. */
const transientProbe: Hex = "0x600160005d60005c60005260206000f3";
const one = `0x${"1".padStart(64, "0")}`;

/**
 * Reads what a chain has of the contracts of payment channels, in one RPC request. The deployed
 * code differs by chain, since it holds its domain. So the escrow is recognised by its domain and
 * its type hashes.
 *
 * @param settlement the escrow; by default the published one
 * @throws FacilitatorError when the chain is unreachable.
 */
export async function readChannelContracts(
  rpc: RpcRequester,
  settlement: Address = channelContracts.settlement,
): Promise<ChannelContracts> {
  const abi = channelSettlementAbi;
  const addresses = { ...contracts, settlement };
  const call = (data: Hex): RpcCall => ({
    method: "eth_call",
    params: [{ to: settlement, data }, "latest"],
  });
  const [probed, domain, ...others] = await askCalls(rpc, [
    { method: "eth_call", params: [{ data: transientProbe }, "latest"] },
    call(encodeFunctionData({ abi, functionName: "eip712Domain" })),
    ...typeHashNames.map((functionName) => call(encodeFunctionData({ abi, functionName }))),
    ...contractNames.map((name) => ({
      method: "eth_getCode",
      params: [addresses[name], "latest"],
    })),
  ]);
  const codes = others.slice(typeHashNames.length);
  const present = new Set(contractNames.filter((_, index) => (codes[index] ?? "0x") !== "0x"));
  const hasTransientStorage = probed === one;
  if (!present.has("settlement")) return { present, differences: [], hasTransientStorage };
  const foreign = typeHashNames.filter((name, index) => others[index] !== channelTypeHashes[name]);
  return {
    present,
    differences: [
      ...(isDomain(domain, { settlement, chainId: rpc.chainId }) ? [] : ["domain"]),
      ...foreign,
    ],
    hasTransientStorage,
  };
}

function isDomain(data: Hex | undefined, own: { settlement: Address; chainId: number }): boolean {
  if (data === undefined) return false;
  try {
    const [, name, version, chainId, verifyingContract] = decodeFunctionResult({
      abi: channelSettlementAbi,
      functionName: "eip712Domain",
      data,
    });
    return (
      name === channelDomain.name &&
      version === channelDomain.version &&
      chainId === BigInt(own.chainId) &&
      isSameAddress(verifyingContract, own.settlement)
    );
  } catch {
    // Another contract may return anything.
    return false;
  }
}
