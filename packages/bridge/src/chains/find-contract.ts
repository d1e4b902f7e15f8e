import { type Address, isAddressEqual, type PublicClient } from "viem";
import { BridgeError } from "../bridge-error.ts";
import { readPeer } from "../quote/read-peer.ts";
import { askChain } from "./ask-chain.ts";
import {
  type BridgeChain,
  contractKinds,
  type EvmBridgeChain,
  isReachedBy,
} from "./bridge-chain.ts";
import { oftAbi } from "./oft-abi.ts";

/**
 * The contract to send through. It is the given one, or the source chain's first with the token and
 * a network member on the target. Its peer there is read too, since tables grow old. Where the
 * table has the token of an OFT, a node that names another one is not believed. It may lie about
 * the chain that it serves.
 *
 * @throws BridgeError `no_route`, `invalid_contract`, `refused_by_contract`, `rpc_unavailable`
 */
export async function findContract(options: {
  client: PublicClient;
  source: EvmBridgeChain;
  target: BridgeChain;
  token: Address;
  given: Address | undefined;
}): Promise<Address> {
  const { client, source, target, token, given } = options;
  const ofTable = contractKinds.flatMap((kind) => {
    const contradicts = kind === "oft" && source.token && !isAddressEqual(source.token, token);
    return isReachedBy(target, kind) && !contradicts ? (source.contracts[kind] ?? []) : [];
  });
  for (const contract of given === undefined ? ofTable : [given]) {
    if (!isAddressEqual(await readToken(client, contract), token)) continue;
    const peer = await readPeer(client, { contract, eid: target.eid });
    if (BigInt(peer) !== 0n) return contract;
  }
  throw new BridgeError(
    "no_route",
    given === undefined
      ? `No contract of ${source.name} takes the token ${token} to ${target.name}`
      : `The contract ${given} does not take the token ${token} to ${target.name}`,
  );
}

/**
 * The token of an OFT.
 *
 * @throws BridgeError `invalid_contract`, `rpc_unavailable`
 */
export async function readToken(client: PublicClient, contract: Address): Promise<Address> {
  const call = { address: contract, abi: oftAbi, functionName: "token" } as const;
  try {
    return await askChain(`the token of ${contract}`, client.readContract(call));
  } catch (error) {
    if (!(error instanceof BridgeError) || error.code !== "refused_by_contract") throw error;
    throw new BridgeError("invalid_contract", `There is no OFT at ${contract}`);
  }
}
