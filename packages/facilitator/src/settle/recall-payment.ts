import type {
  AnyPaymentPayload,
  AnyPaymentRequirements,
  Payment,
  SettleResponse,
} from "@coinslot/protocol";
import type { LedgerPayment } from "../ledger/payments/ledger-payment.ts";
import { releasePayment } from "../ledger/payments/release-payment.ts";
import { reservePayment } from "../ledger/payments/reserve-payments.ts";
import { getPayments } from "../ledger/queries/list-payments.ts";
import { lookUpPayment } from "../ledger/queries/look-up-payments.ts";
import { schemeOf } from "../schemes/registry.ts";
import { awaitOutcome, conclude, findHash } from "./await-outcome.ts";
import { isAskedFor, keyHashOf, paymentOf, settleFingerprint } from "./settle-request.ts";
import { duplicateResponse, refundedResponse, settleResponseOf } from "./settle-response.ts";
import type { SettlingContext } from "./settling-context.ts";
import { reservationLost } from "./unavailable-errors.ts";

/** The response for a payment that the chain refuses now and that was settled before. */
export async function recallPayment(
  settling: SettlingContext,
  payload: AnyPaymentPayload,
  requirements: AnyPaymentRequirements,
  idempotencyKey: string | undefined,
): Promise<SettleResponse | undefined> {
  const { ledger } = settling.context;
  const payment = paymentOf(payload, requirements);
  if (payment === undefined || !isAskedFor(payment)) return undefined;
  const keyHash = keyHashOf(payment, idempotencyKey);
  const fingerprint = settleFingerprint(payment);
  const { availability, payment: known } = await lookUpPayment(ledger, {
    id: payment.id,
    fingerprint,
    keyHash,
  });
  if (known === undefined || availability === "free" || availability === "key_conflict")
    return undefined;
  if (availability === "refunded") return refundedResponse({ payment: known });
  if (availability !== "resumable") return repeatPayment(settling, { known, keyHash, payment });
  const taken = await reservePayment(ledger, {
    ...schemeOf(payment).admit(payment),
    fingerprint,
    keyHash,
  });
  if (taken.outcome === "reserved") {
    // It has failed or been released since the look-up. While held, it could be neither settled nor
    // watched.
    const { token } = taken;
    await releasePayment(ledger, { token, payer: payment.id.payer, countsAgainstPayer: false });
    return undefined;
  }
  if (taken.outcome !== "resumed") return repeatPayment(settling, { known, keyHash, payment });
  return conclude(settling, { payment, known: taken.payment, token: taken.token });
}

/** The response to a repeated settlement of a payment that another call brought. */
export async function repeatPayment(
  settling: SettlingContext,
  options: { known: LedgerPayment; keyHash: string | undefined; payment: Payment | undefined },
): Promise<SettleResponse> {
  const { known, keyHash, payment } = options;
  const isSameCaller = keyHash !== undefined && known.keyHash === keyHash;
  if (!isSameCaller) {
    return duplicateResponse({ payment: known, hash: await findHash(settling, known) });
  }
  await awaitOutcome(settling, { known, payment, token: undefined });
  // The outcome may be of a later reservation, for another request.
  const [standing] = await getPayments(settling.context.ledger, [known.id]);
  if (standing === undefined) throw reservationLost();
  if (standing.refundStartedAt !== undefined) return refundedResponse({ payment: standing });
  const hash = await findHash(settling, standing);
  const isSameRequest = standing.keyHash === keyHash && standing.fingerprint === known.fingerprint;
  return isSameRequest
    ? settleResponseOf({ payment: standing, hash })
    : duplicateResponse({ payment: standing, hash });
}
