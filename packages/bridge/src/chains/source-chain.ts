import { BridgeError } from "../bridge-error.ts";
import type { BridgeContext } from "../bridge-options.ts";
import type { BridgeChain, EvmBridgeChain } from "./bridge-chain.ts";
import type { Connection } from "./connect.ts";

/** The chain that holds the tokens. */
export interface SourceChain extends Connection {
  chain: EvmBridgeChain;
}

/**
 * Reads which chain is behind the RPC endpoint. With `target`, checks that it is another one.
 *
 * @throws BridgeError `unknown_source_chain`, `same_chain`, `rpc_unavailable`
 */
export async function findSourceChain(
  { connections, chains }: Pick<BridgeContext, "connections" | "chains">,
  target?: BridgeChain,
): Promise<SourceChain> {
  const connection = await connections.source();
  const chain = chains.byChainId(connection.chainId);
  if (chain === undefined) {
    const text = `The RPC endpoint serves chain ${connection.chainId}, which no row of the chain table has`;
    throw new BridgeError("unknown_source_chain", text);
  }
  if (chain === target) {
    throw new BridgeError("same_chain", `The tokens are on ${chain.name} already`);
  }
  return { ...connection, chain };
}
