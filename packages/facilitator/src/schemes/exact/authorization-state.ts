import type { AuthorizationId } from "@coinslot/protocol";
import { hexWord } from "../../evm/word.ts";
import type { BatchCall } from "../scheme.ts";

/** `authorizationState(address,bytes32)`, EIP-3009. */
const authorizationStateSelector = "0xe94a0102";

/** Call that reads from a token whether an authorization was used, or cancelled. */
export function authorizationStateCall({ asset, payer, nonce }: AuthorizationId): BatchCall {
  const callData = `${authorizationStateSelector}${hexWord(payer)}${hexWord(nonce)}` as const;
  return { target: asset, callData };
}

/** A token is not trusted to return a boolean. */
export function isAuthorizationUsed(_: AuthorizationId, word: bigint): boolean | undefined {
  if (word === 1n) return true;
  return word === 0n ? false : undefined;
}
