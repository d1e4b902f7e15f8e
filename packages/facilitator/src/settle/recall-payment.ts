import type {
  AnyPaymentPayload,
  AnyPaymentRequirements,
  Payment,
  SettleResponse,
} from "@coinslot/protocol";
import type { LedgerPayment } from "../ledger/payments/ledger-payment.ts";
import { schemeOf } from "../schemes/registry.ts";
import { awaitOutcome, conclude, findHash } from "./await-outcome.ts";
import { isAskedFor, keyHashOf, paymentOf, settleFingerprint } from "./settle-request.ts";
import { duplicateResponse, settleResponseOf } from "./settle-response.ts";
import type { SettlingContext } from "./settling-context.ts";

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
  const { standing, payment: known } = await ledger.lookUp({
    id: payment.id,
    fingerprint,
    keyHash,
  });
  if (known === undefined || standing === "free" || standing === "key_conflict") return undefined;
  if (standing !== "resumable") return repeatPayment(settling, { known, keyHash, payment });
  const taken = await ledger.reserve({ ...schemeOf(payment).admit(payment), fingerprint, keyHash });
  if (taken.outcome === "reserved") {
    // It has come to nothing since it was looked up. While held, it could be neither settled nor
    // watched.
    const { token } = taken;
    await ledger.release({ token, payer: payment.id.payer, countsAgainstPayer: false });
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
  return settleResponseOf(await awaitOutcome(settling, known, payment));
}
