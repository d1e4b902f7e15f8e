import type { SealedAnswer, SettleResponse } from "@coinslot/protocol";
import { encodeAnswer, type HeldAnswer } from "./response/held-answer.ts";
import type { Sale } from "./sale.ts";

/**
 * Settles a sale, keeping the handler's answer first for a buyer with an idempotency key. After any
 * throw of the facilitator, the outcome is unknown. The payment is not given up: the facilitator
 * was asked. `runsHandler`: the handler runs after a success.
 */
export async function settleSale(
  sale: Sale,
  { answer, runsHandler }: { answer?: HeldAnswer; runsHandler?: boolean } = {},
): Promise<SettleResponse> {
  const { facilitator, payload, requirements, reservation, resource, settings } = sale;
  const { payment, limitKey } = sale;
  try {
    return await facilitator.settle(payload, requirements, {
      reservation,
      resource,
      limitKey,
      answer: answer && sealAnswer(sale, answer),
      runsHandler,
    });
  } catch (error) {
    settings.onError(error);
    return {
      success: false,
      errorReason: "settlement_pending",
      transaction: "",
      network: payment.network,
      payer: payment.authorization.from,
    };
  }
}

function sealAnswer({ seal, settings }: Sale, answer: HeldAnswer): SealedAnswer | undefined {
  if (seal === undefined || answer.body.length > settings.maxKeptAnswerBytes) return undefined;
  return { keyHash: seal.keyHash, sealed: seal.seal(encodeAnswer(answer)) };
}
