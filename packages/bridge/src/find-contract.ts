import { type Address, isAddressEqual, type PublicClient } from "viem";
import { askChain } from "./ask-chain.ts";
import {
  type BridgeChain,
  contractKinds,
  type EvmBridgeChain,
  isReachedBy,
} from "./bridge-chain.ts";
import { BridgeError } from "./bridge-error.ts";
import { oftAbi } from "./oft-abi.ts";

/**
 * The contract to send through: the one given, or the first of the source chain whose token it is and whose network
 * reaches the target.
 *
 * @throws BridgeError `no_route`, `invalid_contract`, `rpc_unavailable`
 */
export async function findContract(options: {
  client: PublicClient;
  source: EvmBridgeChain;
  target: BridgeChain;
  token: Address;
  given: Address | undefined;
}): Promise<Address> {
  const { client, source, target, token, given } = options;
  const candidates =
    given === undefined
      ? contractKinds.flatMap((kind) =>
          isReachedBy(target, kind) ? (source.contracts[kind] ?? []) : [],
        )
      : [given];
  for (const contract of candidates) {
    if (isAddressEqual(await readToken(client, contract), token)) return contract;
  }
  throw new BridgeError(
    "no_route",
    given === undefined
      ? `No contract of ${source.name} takes the token ${token} to ${target.name}`
      : `The contract ${given} is for another token than ${token}`,
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
