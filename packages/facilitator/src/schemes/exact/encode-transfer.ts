import type { Authorization, Hex } from "@coinslot/protocol";
import { splitSignature } from "../../evm/split-signature.ts";
import { bytesWords, hexWord, uintWord } from "../../evm/word.ts";
import type { Claim } from "../scheme.ts";

/** Selectors of EIP-3009's `transferWithAuthorization`, and of its overload for contract payers. */
const selectorByKey = "e3ee160e";
const selectorByCode = "cf092995";

const headWordsByCode = 7;

/**
 * Calldata of a token's signed transfer. For a payer without code it has `(v, r, s)`, split from
 * any form of a key's signature. For a payer with code (EIP-1271) it has the unchanged signature.
 *
 * @returns `undefined` for a payer without code whose signature no key can have made.
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
