import { type AuthorizationId, headerName } from "@coinslot/protocol";
import { bytesToHex } from "viem";
import { releaseBooking } from "../budget/release-booking.ts";
import { type Candidate, refuse } from "../offer/choose-requirements.ts";
import { OfferRefusedError, type Refusal } from "../offer/offer-refused-error.ts";
import type { PayingFetchContext } from "../paying-fetch-options.ts";
import { PaymentError } from "../payment-error.ts";
import type { RepeatableRequest } from "../send/repeatable-request.ts";
import { draftTerms, signPayment } from "./sign-payment.ts";
import type { SignedPayment } from "./signed-payment.ts";

/**
 * Books and signs the first of the candidates for which the budget has room. A nonce that the
 * seller chose and that is booked already is not signed again: the seller has to offer afresh. One
 * that repeats itself without end loses that candidate, and the next one counts.
 *
 * On any throw, no payment is left, and none is booked. The exception: once `beforeSend` has got
 * the payment, it may be kept. Then it stays booked until it cannot be used.
 *
 * @throws OfferRefusedError `over_budget` when the budget has room for none, `challenge_in_use`
 * where such a nonce is left
 * @throws PaymentError when the budget cannot be kept or the account does not sign. Else the error
 * of `beforeSend`, or the signal's reason when the caller aborted
 */
export async function bookAndSign(
  context: PayingFetchContext,
  wanted: {
    candidates: readonly Candidate[];
    request: RepeatableRequest;
    /** Destination of the payment. */
    url: URL;
    /** Nonces of bookings that have reserved the room for this payment. */
    held: readonly string[];
    /** True if the offer is fetched anew where a nonce is in use. */
    mayFetchAnew: boolean;
    /** Resolves to whether there is more room than before. Works once. */
    freeRoom: () => Promise<boolean>;
  },
): Promise<SignedPayment | "nonce_in_use"> {
  const { account, budget, onPayment } = context;
  const { request, url, held: insteadOf } = wanted;
  const { host, hostname } = url;
  const idempotencyKey =
    request.headers.get(headerName.idempotencyKey) ?? bytesToHex(context.randomBytes(32)).slice(2);
  const refusals: Refusal[] = [];

  for (const candidate of wanted.candidates) {
    const { asset, amount } = candidate;
    const now = context.now();
    const terms = draftTerms({ ...context, candidate, payer: account.address, now });
    const { network, payer, nonce, validBefore } = terms;
    const id = { network, asset: terms.asset, payer, nonce };
    request.signal?.throwIfAborted();
    // Booked before it is signed: parallel requests, and a restart after a crash, find the amount
    // taken.
    const booking = { id, validBefore, asset, amount, host: hostname, insteadOf };
    const booked = await budget.book(booking);
    if (!booked.ok) {
      refusals.push(refuse(candidate, "over_budget", booked.message));
      continue;
    }
    if (!booked.isNew || (await isUsedUp(context, candidate, id))) {
      if (wanted.mayFetchAnew) return "nonce_in_use";
      const message = "The seller repeats a challenge that another payment has answered";
      refusals.push(refuse(candidate, "challenge_in_use", message));
      continue;
    }
    const { protocol, description } = candidate.way;
    onPayment({ state: "booked", host, terms, offer: { protocol, description } });
    let isHandedOver = false;
    try {
      request.signal?.throwIfAborted();
      const signing = signPayment({ ...wanted, account, candidate, terms, idempotencyKey });
      const payment = await untilAborted(signing, request.signal);
      if (context.now() >= validBefore * 1000) {
        const text = "The payment expired while the account signed it; nothing was sent";
        throw new PaymentError("signing_failed", text);
      }
      onPayment({ state: "signed", host, terms });
      isHandedOver = context.beforeSend !== undefined;
      await context.beforeSend?.(payment);
      request.signal?.throwIfAborted();
      return payment;
    } catch (error) {
      if (!isHandedOver) await releaseBooking(context, host, terms);
      throw error;
    }
  }
  const isOver = refusals.some(({ code }) => code === "over_budget");
  if (isOver && (await wanted.freeRoom())) return bookAndSign(context, wanted);
  throw new OfferRefusedError(refusals);
}

/**
 * Frees the booking of a nonce that the seller chose and that the chain shows as used. The booking
 * of a settled payment ends, so its nonce is not known here. After the booking: no payment of this
 * budget comes between.
 */
async function isUsedUp(
  { budget, chains }: PayingFetchContext,
  { way }: Candidate,
  id: AuthorizationId,
): Promise<boolean> {
  if (way.nonce === undefined || (await chains.isUsed(id)) !== true) return false;
  await budget.release(id.nonce);
  return true;
}

// A signer may wait for a person without end. A signature after the abort is dropped.
export async function untilAborted<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  if (signal === undefined) return work;
  let leave: () => void = () => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    leave = () => reject(signal.reason);
  });
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave);
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}
