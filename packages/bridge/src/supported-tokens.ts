import { type Address, erc20Abi } from "viem";
import { askChain } from "./ask-chain.ts";
import { type ContractKind, contractKinds, isReachedBy } from "./bridge-chain.ts";
import type { BridgeContext } from "./bridge-options.ts";
import { readToken } from "./find-contract.ts";
import { findSourceChain } from "./source-chain.ts";

/** A token that can be sent from the source chain, and where to. */
export interface SupportedToken {
  address: Address;
  symbol: string;
  decimals: number;
  /** The network of contracts that takes it. The same token may be in two of them. */
  kind: ContractKind;
  contract: Address;
  /** Keys of the chains it can be sent to. */
  targetChains: readonly string[];
}

/**
 * Asks the source chain which tokens its contracts are for.
 *
 * @throws BridgeError `unknown_source_chain`, `invalid_contract`, `rpc_unavailable`
 */
export async function listSupportedTokens(context: BridgeContext): Promise<SupportedToken[]> {
  const { client, chain } = await findSourceChain(context);
  const tokens = contractKinds.map(async (kind): Promise<SupportedToken[]> => {
    const contract = chain.contracts[kind];
    if (contract === undefined) return [];
    const address = await readToken(client, contract);
    const token = { address, abi: erc20Abi } as const;
    const [symbol, decimals] = await Promise.all([
      askChain("to tell its symbol", client.readContract({ ...token, functionName: "symbol" })),
      askChain("to tell its decimals", client.readContract({ ...token, functionName: "decimals" })),
    ]);
    const targetChains = context.chains.all
      .filter((target) => target !== chain && isReachedBy(target, kind))
      .map(({ key }) => key);
    return [{ address, symbol, decimals, kind, contract, targetChains }];
  });
  return (await Promise.all(tokens)).flat();
}
