import type { Address } from "viem";
import type { BridgeContext } from "../bridge-options.ts";
import { type ContractKind, contractKinds, isReachedBy } from "./bridge-chain.ts";
import { readToken } from "./find-contract.ts";
import { findSourceChain } from "./source-chain.ts";
import { readTokenFacts, type TokenFacts } from "./token-facts.ts";

/** A token that can be sent from the source chain, with its target chains. */
export interface SupportedToken extends TokenFacts {
  /** The network of contracts that takes it. The same token may be in two of them. */
  kind: ContractKind;
  contract: Address;
  /** Keys of the chains it can be sent to. */
  targetChains: readonly string[];
}

/**
 * Reads from the source chain the tokens of its contracts.
 *
 * @throws BridgeError `unknown_source_chain`, `invalid_contract`, `invalid_token`,
 * `rpc_unavailable`
 */
export async function listSupportedTokens(context: BridgeContext): Promise<SupportedToken[]> {
  const { client, chain } = await findSourceChain(context);
  const tokens = contractKinds.map(async (kind): Promise<SupportedToken[]> => {
    const contract = chain.contracts[kind];
    if (contract === undefined) return [];
    const address = await readToken(client, contract);
    const facts = await readTokenFacts(client, address);
    const targetChains = context.chains.all
      .filter((target) => target !== chain && isReachedBy(target, kind))
      .map(({ key }) => key);
    return [{ ...facts, kind, contract, targetChains }];
  });
  return (await Promise.all(tokens)).flat();
}
