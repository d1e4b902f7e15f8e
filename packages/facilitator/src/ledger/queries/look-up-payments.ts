import { authorizationKey, type ReservationRequest, type SealedAnswer } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Kysely } from "kysely";
import { findKeyOwners } from "../payments/key-owners.ts";
import type { LedgerPayment } from "../payments/ledger-payment.ts";
import type { LedgerSchema } from "../schema.ts";
import { type Availability, availabilityOf } from "../transactions/canonical-blocks.ts";
import { findAnswers } from "./find-answers.ts";
import { findPayments } from "./find-payments.ts";

/**
 * Availability of an authorization for a request, with the payment or answer that belongs to it.
 */
export interface PaymentStanding {
  standing: Availability;
  payment: LedgerPayment | undefined;
  answer: SealedAnswer | undefined;
}

/**
 * Availability of authorizations for requests, in their order. Changes nothing, and so promises
 * nothing.
 */
export async function lookUpPayments(options: {
  db: Kysely<LedgerSchema>;
  dialect: Dialect;
  requests: readonly ReservationRequest[];
  /** Unix milliseconds. */
  now: number;
  heartbeatLeaseMs: number;
  keepAnswersMs: number;
}): Promise<PaymentStanding[]> {
  const { db, dialect, requests, now, heartbeatLeaseMs, keepAnswersMs } = options;
  const [known, keyOwners, answers] = await Promise.all([
    findPayments({ db, dialect, ids: requests.map(({ id }) => id), heartbeatLeaseMs }),
    findKeyOwners({ db, requests, now, keepAnswersMs }),
    findAnswers({ db, requests, now }),
  ]);
  return requests.map((request) => {
    const key = authorizationKey(request.id);
    const keyOwner = request.keyHash && keyOwners.get(`${request.id.payer}/${request.keyHash}`);
    const found = known.get(key);
    const standing =
      keyOwner && keyOwner !== key
        ? "key_conflict"
        : availabilityOf(found?.payment, found?.isHeld ?? false, request);
    return { standing, payment: found?.payment, answer: answers.get(request) };
  });
}
