import { authorizationKey, type ReservationRequest, type SealedAnswer } from "@coinslot/protocol";
import { batchPerLedger, maxAtOnce } from "../batch-per-ledger.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { type Availability, availabilityOf } from "../payments/availability.ts";
import { findKeyOwners } from "../payments/key-owners.ts";
import type { LedgerPayment } from "../payments/ledger-payment.ts";
import { findAnswers } from "./find-answers.ts";
import { findPayments } from "./find-payments.ts";

/**
 * Availability of an authorization for a request, with the payment or answer that belongs to it.
 */
export interface FoundPayment {
  availability: Availability;
  payment: LedgerPayment | undefined;
  answer: SealedAnswer | undefined;
}

/**
 * Availability of an authorization for a request. Changes nothing, and so promises nothing. Calls
 * of one moment share their statements.
 */
export const lookUpPayment = batchPerLedger(lookUpPayments, { maxItems: maxAtOnce });

async function lookUpPayments(
  ledger: LedgerContext,
  requests: readonly ReservationRequest[],
): Promise<FoundPayment[]> {
  const { db, dialect, heartbeatLeaseMs, keepAnswersMs } = ledger;
  const now = ledger.now();
  const [known, keyOwners, answers] = await Promise.all([
    findPayments({ db, dialect, ids: requests.map(({ id }) => id), heartbeatLeaseMs }),
    findKeyOwners({ db, dialect, requests, now, keepAnswersMs }),
    findAnswers({ db, dialect, requests, now }),
  ]);
  return requests.map((request) => {
    const key = authorizationKey(request.id);
    const keyOwner = request.keyHash && keyOwners.get(`${request.id.payer}/${request.keyHash}`);
    const found = known.get(key);
    const availability =
      keyOwner && keyOwner !== key
        ? "key_conflict"
        : availabilityOf(found?.payment, found?.isHeld ?? false, request);
    return { availability, payment: found?.payment, answer: answers.get(request) };
  });
}
