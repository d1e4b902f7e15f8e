import type { Hex } from "@coinslot/protocol";
import { bytesWords, hexWord, uintWord } from "../evm/word.ts";
import type { BatchCall } from "../schemes/scheme.ts";

/** Multicall3's `aggregate3((address target, bool allowFailure, bytes callData)[])`. */
const aggregate3 = "82ad56cb";

/**
 * Multicall3 calldata for many calls, each of which may fail by itself. Encoded by hand: a general
 * encoder takes longer than all other work for a payment.
 */
export function encodeBatch(calls: readonly BatchCall[]): Hex {
  const tuples = calls.map(
    ({ target, callData }) =>
      hexWord(target) + uintWord(1) + uintWord(3 * 32) + bytesWords(callData),
  );
  let offset = 32 * tuples.length;
  const offsets = tuples.map((tuple) => {
    const word = uintWord(offset);
    offset += tuple.length / 2;
    return word;
  });
  const words = [uintWord(32), uintWord(tuples.length), ...offsets, ...tuples];
  return `0x${aggregate3}${words.join("")}`;
}

/** Number of calls in a batch; `undefined` for other calldata. */
export function countBatch(data: Uint8Array): number | undefined {
  const head = Buffer.from(data.subarray(0, headBytes)).toString("hex");
  return head.startsWith(aggregate3) ? Number(`0x${head.slice(-64)}`) : undefined;
}

/** The selector, an offset, and the number of calls. */
const headBytes = 4 + 2 * 32;
