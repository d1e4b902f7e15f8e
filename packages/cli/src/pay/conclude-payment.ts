import { type PaymentOutcome, paymentOf } from "@coinslot/client";
import { UnclearError } from "../exit-code.ts";
import { formatFacts } from "../terminal.ts";
import { formatPrice } from "./format-price.ts";
import { keepForResume } from "./kept-payment.ts";
import { OutputError } from "./output-error.ts";
import type { PayContext } from "./pay-context.ts";
import { notePayment } from "./payment-history.ts";
import { printAnswer } from "./print-answer.ts";
import { printable } from "./printable.ts";
import type { BuyerRequest } from "./read-request.ts";
import type { SpendableToken } from "./spendable-tokens.ts";

/** State of a payment after its answer: at its end, or kept since its answer can be had again. */
export type Conclusion = "ended" | "kept";

interface Bought {
  request: BuyerRequest;
  response: Response;
  outcome: PaymentOutcome;
  tokens: readonly SpendableToken[];
}

/**
 * Prints the answer and the receipt.
 *
 * @throws Error when the answer is no success and nothing was paid; UnclearError when it is none
 * although the payment was taken, or still can be. Then the payment has been kept
 */
export async function concludePayment(
  context: PayContext,
  purchase: { request: BuyerRequest; response: Response; tokens: readonly SpendableToken[] },
): Promise<Conclusion> {
  const { response } = purchase;
  const outcome = paymentOf(response);
  if (outcome === undefined) return concludeUnpaid(context, response);
  const bought = { ...purchase, outcome };
  await notePayment(context, {
    state: outcome.state,
    request: purchase.request,
    terms: outcome.payment.terms,
    transaction: outcome.receipt?.transaction,
  });
  let failure: unknown;
  try {
    await printAnswer(context, { response, outcome });
  } catch (error) {
    failure = error ?? new Error("The answer broke off");
  }
  printReceipt(context, bought);
  if (failure === undefined && response.ok && outcome.state === "settled") return "ended";

  const how = await keepForResume(context, {
    request: purchase.request,
    payment: outcome.payment,
    receipt: outcome.receipt,
  });
  const isRead = failure instanceof OutputError && failure.isReaderGone;
  if (isRead && response.ok && outcome.state === "settled") {
    const text = "It was paid, and the reader of the output left before the end of the answer.";
    context.terminal.err(`${text} ${how}`);
    return "kept";
  }
  throw new UnclearError(`${describe(bought, failure)} ${how}`, { cause: failure });
}

async function concludeUnpaid(context: PayContext, response: Response): Promise<Conclusion> {
  try {
    await printAnswer(context, { response, outcome: undefined });
  } catch (error) {
    if (!(error instanceof OutputError)) throw error;
    if (!error.isReaderGone) {
      const text = `The answer could not be written: ${error.message}. Nothing was paid.`;
      throw new Error(text, { cause: error });
    }
  }
  if (!response.ok) throw new Error(`The answer is ${describeStatus(response)}`);
  context.terminal.err("The request was free.");
  return "ended";
}

function describe({ response, outcome }: Bought, failure: unknown): string {
  const { state, payment } = outcome;
  if (state === "rejected") {
    const reason = outcome.reason === undefined ? "" : `: ${printable(outcome.reason)}`;
    if (payment.terms.channel) {
      return `The seller refused the voucher${reason}. It can claim it all the same, and the next voucher of the channel covers it.`;
    }
    const until = new Date(payment.terms.validBefore * 1000).toISOString();
    // The seller claims not to have taken the money; it could until then.
    return `The seller refused the payment${reason}. It could still take it until ${until}.`;
  }
  const paid = state === "settled" ? "It was paid" : "It was paid, or may have been";
  if (failure instanceof OutputError) {
    return `${paid}, and the answer could not be written: ${printable(failure.message)}.`;
  }
  if (failure !== undefined) return `${paid}, and the answer broke off.`;
  return state === "settled"
    ? `It was paid, and the answer is ${describeStatus(response)}.`
    : `The answer is ${describeStatus(response)}, without proof of payment.`;
}

function describeStatus({ status, statusText }: Response): string {
  return statusText === "" ? `${status}` : `${status} ${printable(statusText)}`;
}

function printReceipt({ terminal }: PayContext, { outcome, tokens }: Bought): void {
  const { state, payment, receipt } = outcome;
  if (state !== "settled") return;
  const { network, payTo, channel } = payment.terms;
  const transaction = printable(receipt?.transaction ?? "");
  terminal.err(
    formatFacts(terminal, {
      paid: `${formatPrice(payment.terms, tokens)} to ${payTo}`,
      ...(channel === undefined
        ? { in: `${transaction} on ${network}` }
        : { by: `channel ${channel.id} on ${network}` }),
      ...(channel?.deposit ? { deposited: `${depositOf(outcome, tokens)} in ${transaction}` } : {}),
    }),
  );
}

function depositOf({ payment: { terms } }: PaymentOutcome, tokens: Bought["tokens"]): string {
  return formatPrice({ ...terms, amount: terms.channel?.deposit ?? "0" }, tokens);
}
