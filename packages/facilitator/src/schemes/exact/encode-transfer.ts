import type { Authorization, Hex } from "@coinslot/protocol";
import { splitSignature } from "../../evm/split-signature.ts";
import { bytesWords, hexWord, uintWord } from "../../evm/word.ts";
import type { Claim } from "../scheme.ts";

/** Selectors of EIP-3009's `transferWithAuthorization`, and of its overload for contract payers. */
const selectorByKey = "e3ee160e";
const selectorByCode = "cf092995";

const headWordsByCode = 7;

/**
 * The calldata with which a token makes a signed transfer. A payer without code has signed with its
 * key: `(v, r, s)`, in any form in which the signature travelled. A payer with code is asked by the
 * token (EIP-1271) and gets its signature as it wrote it.
 *
 * @returns `undefined` when a payer without code claims a signature that is none of a key: no
 * calldata makes such a transfer.
 */
export function encodeTransfer(options: {
  authorization: Authorization;
  signature: Hex;
  payerHasCode: boolean;
}): Hex | undefined {
  const { authorization, signature, payerHasCode } = options;
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const words =
    hexWord(from) +
    hexWord(to) +
    uintWord(value) +
    uintWord(validAfter) +
    uintWord(validBefore) +
    hexWord(nonce);
  if (payerHasCode) {
    const offset = uintWord(headWordsByCode * 32);
    return `0x${selectorByCode}${words}${offset}${bytesWords(signature)}`;
  }
  const key = splitSignature(signature);
  if (key === undefined) return undefined;
  return `0x${selectorByKey}${words}${uintWord(key.v)}${hexWord(key.r)}${hexWord(key.s)}`;
}

/**
 * Bytes of the calldata for a payer with code: selector, words, the signature filled up to a word.
 */
export function maxTransferBytes({ signature }: Pick<Claim, "signature">): number {
  return 4 + (headWordsByCode + 1) * 32 + 31 + signature.length / 2 - 1;
}
