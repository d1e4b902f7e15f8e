import { OutcomeUnclearError, PaymentError, type SignedPayment } from "@coinslot/client";
import { UnclearError, UsageError } from "../exit-code.ts";
import { keepForResume } from "./kept-payment.ts";
import type { PayContext } from "./pay-context.ts";
import { printable, printableWhole } from "./printable.ts";
import type { BuyerRequest } from "./read-request.ts";

/**
 * Converts a failure into an error with its remedy. A payment whose outcome is unclear is kept.
 *
 * @param failed.sent the payment, if it was handed over to be sent
 */
export async function explainFailure(
  context: PayContext,
  failed: { request: BuyerRequest; error: unknown; sent?: SignedPayment | undefined },
): Promise<unknown> {
  const { request, error, sent } = failed;
  if (error instanceof UnclearError) return error;
  if (error instanceof OutcomeUnclearError) {
    const how = await keepForResume(context, { request, payment: error.payment });
    const { transaction, reason } = error;
    const details = [
      ...(reason === undefined ? [] : [`The seller's reason: ${printable(reason)}.`]),
      ...(transaction === undefined ? [] : [`Its transaction is ${printable(transaction)}.`]),
    ].join(" ");
    return new UnclearError(
      [`The payment was sent, and its outcome is unknown.`, details, how]
        .filter((sentence) => sentence !== "")
        .join(" "),
      { cause: error },
    );
  }
  if (error instanceof PaymentError) return explainRefusal(error);
  if (sent !== undefined) {
    // An error of this program does not prove that nothing was paid.
    const how = await keepForResume(context, { request, payment: sent });
    const detail = error instanceof Error ? error.message : String(error);
    const text = `The payment was sent, and then something failed: ${printable(detail)}. ${how}`;
    return new UnclearError(text, { cause: error });
  }
  if (error instanceof TypeError && error.cause instanceof Error) {
    const { host } = new URL(request.url);
    return new Error(`${host} cannot be reached: ${printable(error.cause.message)}`, {
      cause: error,
    });
  }
  return error;
}

function explainRefusal(error: PaymentError): unknown {
  const { code, cause } = error;
  // The person's answer to the question.
  if (code === "signing_failed" && cause instanceof Error) return cause;
  const advice = adviceOn(code);
  const message = printableWhole(error.message).replace(/\.$/, "");
  const text = advice === undefined ? message : `${message}. ${advice}`;
  return code === "invalid_configuration" || code === "request_mismatch"
    ? new UsageError(text, { cause: error })
    : new Error(text, { cause: error });
}

function adviceOn(code: PaymentError["code"]): string | undefined {
  switch (code) {
    case "challenge_in_use":
      return "A payment kept for another request may answer it: see its file.";
    case "over_budget":
      return "Give --max-price to allow it.";
    case "insufficient_funds":
      return "coinslot wallet shows your balances, coinslot bridge brings more.";
    case "clock_wrong":
      return "Set the clock, or see coinslot doctor if it is right.";
    case "balance_unreadable":
      return "coinslot doctor checks the RPC endpoint.";
    case "unknown_asset":
      return "Name the token in COINSLOT_TOKENS if you want to pay with it.";
    case "unsupported_offer":
      return "For another network, set COINSLOT_RPC_URL_<chain id>.";
    case "insecure_url":
      return "Add --allow-insecure-http on a trusted network.";
    default:
      return undefined;
  }
}
