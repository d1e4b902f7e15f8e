import { splitSignature } from "../../evm/split-signature.ts";
import { bytesWords, hexWord, uintWord } from "../../evm/word.ts";
import type { Claim } from "../scheme.ts";

const headWords = 11;

/** The struct `Transfer` of the simulator contract, as hex digits. */
export function encodeTrial({ id, authorization, signature }: Claim): string {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const key = splitSignature(signature);
  const asTravelled = key && `${key.r}${key.s.slice(2)}${key.v.toString(16)}`;
  return [
    hexWord(id.asset),
    hexWord(from),
    hexWord(to),
    uintWord(value),
    uintWord(validAfter),
    uintWord(validBefore),
    hexWord(nonce),
    uintWord(key?.v ?? 0),
    hexWord(key?.r ?? "0x"),
    hexWord(key?.s ?? "0x"),
    uintWord(headWords * 32),
    bytesWords(signature === asTravelled ? "0x" : signature),
  ].join("");
}

/** Its head, and the signature with a length. */
export function trialBytes({ signature }: Claim): number {
  return 32 * (headWords + 1) + Math.ceil((signature.length - 2) / 64) * 32;
}
