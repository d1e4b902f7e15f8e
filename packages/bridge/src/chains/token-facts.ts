import { type Address, erc20Abi, type PublicClient } from "viem";
import { BridgeError } from "../bridge-error.ts";
import { askChain } from "./ask-chain.ts";

/** A token's metadata, as the contract reports it. */
export interface TokenFacts {
  address: Address;
  symbol: string;
  decimals: number;
}

/**
 * Reads a token's metadata.
 *
 * @throws BridgeError `invalid_token` if there is none; `rpc_unavailable`
 */
export async function readTokenFacts(client: PublicClient, address: Address): Promise<TokenFacts> {
  const token = { address, abi: erc20Abi } as const;
  try {
    const [symbol, decimals] = await Promise.all([
      askChain("its symbol", client.readContract({ ...token, functionName: "symbol" })),
      askChain("its decimals", client.readContract({ ...token, functionName: "decimals" })),
    ]);
    return { address, symbol, decimals };
  } catch (error) {
    if (!(error instanceof BridgeError) || error.code !== "refused_by_contract") throw error;
    throw new BridgeError("invalid_token", `${address} has no token`);
  }
}
