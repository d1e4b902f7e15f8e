import type { PayingFetchContext } from "../paying-fetch-options.ts";
import type { PaymentTerms } from "../sign/signed-payment.ts";

/** Frees the amount of a payment whose signature never left this process, and is dropped here. */
export async function releaseBooking(
  context: PayingFetchContext,
  host: string,
  terms: PaymentTerms,
): Promise<void> {
  try {
    await context.budget.release(terms.nonce);
    context.onPayment({ state: "released", host, terms });
  } catch {
    // Fail closed: it then counts as spent.
  }
}
