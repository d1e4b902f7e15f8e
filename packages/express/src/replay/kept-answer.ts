import type { SealedAnswer } from "@coinslot/protocol";
import { decodeAnswer, type HeldAnswer } from "../response/held-answer.ts";
import type { Sale } from "../sale.ts";
import type { AnswerSeal } from "./answer-seal.ts";

/** Opens a kept answer for the buyer that sends its key. */
export function openKeptAnswer(
  kept: SealedAnswer | undefined,
  seal: AnswerSeal | undefined,
): HeldAnswer | undefined {
  const opened = kept && seal?.open(kept.sealed);
  return opened && decodeAnswer(opened);
}

/** Keeps the answer to a sale in this process: it may be paid for, and has not arrived. */
export function keepAnswer(sale: Sale, answer: HeldAnswer): void {
  const { answers, settings } = sale;
  if (answer.body.length > settings.maxKeptAnswerBytes) return;
  answers.keep(ownerOf(sale), answer, settings.now());
}

/** The answer to a resumed sale: under the buyer's key, or in the memory of this process. */
export function findKeptAnswer(
  sale: Sale,
  sealed: SealedAnswer | undefined,
): HeldAnswer | undefined {
  const { answers, settings, seal } = sale;
  return openKeptAnswer(sealed, seal) ?? answers.find(ownerOf(sale), settings.now());
}

function ownerOf({ payment, fingerprint, seal }: Sale) {
  return { id: payment.id, fingerprint, keyHash: seal?.keyHash };
}
