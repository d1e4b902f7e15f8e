import { releaseBooking } from "../budget/release-booking.ts";
import type { PayingFetchContext } from "../paying-fetch-options.ts";
import { PaymentError } from "../payment-error.ts";
import type { SignedPayment } from "../sign/signed-payment.ts";
import { confirmReceipt } from "./confirm-receipt.ts";
import { noteOutcome, type PaymentOutcome } from "./payment-outcome.ts";
import type { RepeatableRequest } from "./repeatable-request.ts";
import { sendPayment } from "./send-payment.ts";

/**
 * Sends a signed and booked payment, and ends its booking if the outcome allows. Returns the
 * answer, with the outcome noted beside it.
 *
 * @throws PaymentError as `sendPayment` does.
 */
export async function deliverPayment(
  context: PayingFetchContext,
  options: {
    request: RepeatableRequest;
    payment: SignedPayment;
    /** True if the payment was sent before this call. */
    wasSent: boolean;
  },
): Promise<Response> {
  const { onPayment } = context;
  const { terms, sendTo } = options.payment;
  const { host } = new URL(sendTo);
  const onSend = (attempt: number) => onPayment({ state: "sent", host, terms, attempt });
  try {
    const { response, ...sent } = await sendPayment({ ...context, ...options, onSend });
    const outcome = await confirmReceipt(context, sent.outcome, options.request.signal);
    const { state, receipt, reason } = outcome;
    if (state === "settled") await settle(context, outcome);
    noteOutcome(response, outcome);
    onPayment({ state, host, terms, receipt, reason });
    return response;
  } catch (error) {
    // `beforeSend` may have stored the payment for a resume: it stays booked until it expires.
    const isDropped = isUnreachable(error) && context.beforeSend === undefined;
    if (isDropped) await releaseBooking(context, host, terms);
    else if (!isUnreachable(error)) onPayment({ state: "unclear", host, terms });
    throw error;
  }
}

function isUnreachable(error: unknown): boolean {
  return error instanceof PaymentError && error.code === "unreachable";
}

async function settle(context: PayingFetchContext, { payment }: PaymentOutcome): Promise<void> {
  try {
    await context.budget.settle(payment.terms.nonce);
  } catch {
    // The paid response is returned all the same: a booking that stays open counts just the same.
  }
}
