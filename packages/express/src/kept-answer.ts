import type { SealedAnswer } from "@coinslot/protocol";
import type { AnswerSeal } from "./answer-seal.ts";
import { decodeAnswer, type HeldAnswer } from "./held-answer.ts";

/** Opens a kept answer for the buyer who brings its key. */
export function openKeptAnswer(
  kept: SealedAnswer | undefined,
  seal: AnswerSeal | undefined,
): HeldAnswer | undefined {
  const opened = kept && seal?.open(kept.sealed);
  return opened && decodeAnswer(opened);
}
