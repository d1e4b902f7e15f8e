import type { Address, Hex } from "viem";
import { requireEvmAddress } from "./addresses/evm-address.ts";
import { parseRecipient } from "./addresses/parse-recipient.ts";
import { BridgeError } from "./bridge-error.ts";
import type { BridgeChain } from "./chains/bridge-chain.ts";
import type { ChainList } from "./chains/chain-list.ts";

/** A transfer to make: amount, token and destination. */
export interface BridgeRequest {
  /** Key of the target chain, such as "plasma". */
  targetChain: string;
  /** An address in the form of the target chain. */
  recipient: string;
  /** The token on the source chain. */
  token: string;
  /** In the token's smallest unit. */
  amount: bigint;
  /** A contract to send through, instead of the one that the table has for the token. */
  oftContractAddress?: string | undefined;
}

/** A request that passed every check that needs no chain. */
export interface CheckedRequest {
  target: BridgeChain;
  /** The recipient in 32 bytes. */
  to: Hex;
  token: Address;
  amount: bigint;
  oft: Address | undefined;
}

/**
 * Checks a request.
 *
 * @throws BridgeError `unknown_target_chain`, `invalid_recipient`, `invalid_token`,
 * `invalid_contract`, `amount_too_small`
 */
export function checkRequest(request: BridgeRequest, chains: ChainList): CheckedRequest {
  const target = chains.byKey(request.targetChain);
  if (target === undefined) {
    throw new BridgeError(
      "unknown_target_chain",
      `Unknown chain ${JSON.stringify(request.targetChain)}: supportedChains() lists the known ones`,
    );
  }
  const { amount, oftContractAddress } = request;
  if (typeof amount !== "bigint" || amount <= 0n) {
    throw new BridgeError("amount_too_small", "The amount must be a bigint above zero");
  }
  const token = requireEvmAddress(request.token, "token", "invalid_token");
  const oft = checkContractAddress(oftContractAddress);
  return { target, to: parseRecipient(request.recipient, target), token, amount, oft };
}

/**
 * Checks the address of a contract that was given instead of the table's.
 *
 * @throws BridgeError `invalid_contract`
 */
export function checkContractAddress(text: string | undefined): Address | undefined {
  if (text === undefined) return undefined;
  return requireEvmAddress(text, "oftContractAddress", "invalid_contract");
}
