import { type Address, type Hex, isAddressEqual, type PublicClient, pad } from "viem";
import { BridgeError } from "../bridge-error.ts";
import { readChainOptions, type SourceOptions } from "../bridge-options.ts";
import { readPeer } from "../quote/read-peer.ts";
import {
  type BridgeChain,
  type ContractKind,
  contractKinds,
  type EvmBridgeChain,
} from "./bridge-chain.ts";
import { readToken } from "./find-contract.ts";
import { findSourceChain } from "./source-chain.ts";

/** One row of the chain table, compared with its chain. */
export interface ChainCheck {
  chain: EvmBridgeChain;
  contracts: readonly ContractCheck[];
}

/** One contract of a row, compared with the chain. */
export interface ContractCheck {
  kind: ContractKind;
  contract: Address;
  /** The contract's `token()`; `undefined` if there is no OFT. */
  token: Address | undefined;
  /** Differences from the table, in words. Empty: the row is true. */
  problems: readonly string[];
}

/**
 * Verifies a row of the chain table at the chain behind an RPC endpoint. Each contract is an OFT,
 * of the token that the row names. Its peers are the contracts of the other rows.
 *
 * @throws BridgeError `invalid_configuration`, `unknown_source_chain`, `rpc_unavailable`
 */
export async function checkChain(
  options: SourceOptions & { chains?: readonly BridgeChain[] | undefined },
): Promise<ChainCheck> {
  const context = readChainOptions("checkChain", options);
  try {
    const { client, chain } = await findSourceChain(context);
    const kinds = contractKinds.filter((kind) => chain.contracts[kind] !== undefined);
    const contracts = await Promise.all(
      kinds.map((kind) => checkContract({ client, chain, kind, chains: context.chains.all })),
    );
    return { chain, contracts: contracts.flat() };
  } finally {
    context.connections.close();
  }
}

async function checkContract(options: {
  client: PublicClient;
  chain: EvmBridgeChain;
  kind: ContractKind;
  chains: readonly BridgeChain[];
}): Promise<ContractCheck[]> {
  const { client, chain, kind, chains } = options;
  const contract = chain.contracts[kind];
  if (contract === undefined) return [];
  const token = await readToken(client, contract).catch((error: unknown) => {
    if (error instanceof BridgeError && error.code === "invalid_contract") return undefined;
    throw error;
  });
  if (token === undefined) {
    return [{ kind, contract, token, problems: [`there is no OFT at ${contract}`] }];
  }
  const problems: string[] = [];
  // Gold has no token in the table.
  if (kind !== "xautOft" && chain.token && !isAddressEqual(token, chain.token)) {
    problems.push(`its token is ${token}, and ${chain.token} in the table`);
  }
  for (const other of chains) {
    const expected = other.type === "evm" ? other.contracts[kind] : undefined;
    if (other === chain || expected === undefined) continue;
    const peer = await readPeer(client, { contract, eid: other.eid });
    if (!isSame(peer, expected))
      problems.push(`its peer on ${other.key} is ${peer}, not ${expected}`);
  }
  return [{ kind, contract, token, problems }];
}

function isSame(peer: Hex, expected: Address): boolean {
  return peer.toLowerCase() === pad(expected).toLowerCase();
}
