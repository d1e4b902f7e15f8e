import type { Address, Hex, PublicClient } from "viem";
import { askChain } from "../chains/ask-chain.ts";
import { oftAbi } from "../chains/oft-abi.ts";

/**
 * The contract, in 32 bytes, with which an OFT exchanges messages on another chain; zero if there
 * is none. The endpoints deliver its messages to no other.
 *
 * @throws BridgeError `refused_by_contract`, `rpc_unavailable`
 */
export function readPeer(
  client: PublicClient,
  { contract, eid }: { contract: Address; eid: number },
): Promise<Hex> {
  return askChain(
    "its peer",
    client.readContract({ address: contract, abi: oftAbi, functionName: "peers", args: [eid] }),
  );
}
