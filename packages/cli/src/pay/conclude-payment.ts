import { type PaymentOutcome, paymentOf } from "@coinslot/client";
import { UnclearError } from "../exit-code.ts";
import { formatFacts, formatJson } from "../terminal.ts";
import { formatPrice } from "./format-price.ts";
import { keepForResume } from "./kept-payment.ts";
import type { PayContext } from "./pay-context.ts";
import { printable } from "./printable.ts";
import type { BuyerRequest } from "./read-request.ts";
import type { SpendableToken } from "./spendable-tokens.ts";

/**
 * Prints the answer and the receipt.
 *
 * @throws Error when the answer is no success and nothing was paid; UnclearError when it is none
 * although the payment was taken, or may have been: then the payment has been kept
 */
export async function concludePayment(
  context: PayContext,
  told: { request: BuyerRequest; response: Response; tokens: readonly SpendableToken[] },
): Promise<void> {
  const { request, response, tokens } = told;
  const outcome = paymentOf(response);
  try {
    if (context.isJson) await printJson(context, response, outcome);
    // On a terminal the receipt begins a line; the body stays as it is.
    else if (!(await printBody(context, response))) context.terminal.err("");
  } catch (cause) {
    if (outcome === undefined || outcome.state === "rejected") throw cause;
    const how = await keepForResume(context, { request, payment: outcome.payment });
    throw new UnclearError(`It was paid, or may have been, and the answer broke off. ${how}`, {
      cause,
    });
  }
  if (outcome !== undefined) printReceipt(context, outcome, tokens);
  else if (response.ok) context.terminal.err("Nothing had to be paid.");

  if (outcome?.state === "rejected") {
    const reason = outcome.reason === undefined ? "" : `: ${printable(outcome.reason)}`;
    const until = new Date(outcome.payment.terms.validBefore * 1000).toISOString();
    // It says that it has not taken the money; that it could is true until then.
    throw new Error(
      `The seller refused the payment${reason}. It could still take it until ${until}, so it was kept: until then, this request is not paid a second time without asking.`,
    );
  }
  if (response.ok && outcome?.state !== "unclear") return;
  if (outcome === undefined) throw new Error(`The answer is ${describeStatus(response)}`);
  const how = await keepForResume(context, { request, payment: outcome.payment });
  throw new UnclearError(
    outcome.state === "settled"
      ? `It was paid, and the answer is ${describeStatus(response)}. ${how}`
      : `The answer is ${describeStatus(response)}, and it does not say whether it was paid. ${how}`,
  );
}

function describeStatus({ status, statusText }: Response): string {
  return statusText === "" ? `${status}` : `${status} ${printable(statusText)}`;
}

/**
 * As it comes, so that it may be of any kind and length.
 *
 * @returns whether what follows begins a line
 */
async function printBody({ surroundings }: PayContext, { body }: Response): Promise<boolean> {
  let last: number | undefined;
  if (body === null) return true;
  for await (const chunk of body) {
    await surroundings.write(chunk);
    last = chunk.at(-1) ?? last;
  }
  return last === undefined || last === lineFeed;
}

const lineFeed = 0x0a;

async function printJson(
  { terminal }: PayContext,
  response: Response,
  outcome: PaymentOutcome | undefined,
): Promise<void> {
  const { status, headers } = response;
  const bytes = new Uint8Array(await response.arrayBuffer());
  terminal.out(
    formatJson({
      status,
      contentType: headers.get("content-type"),
      ...readable(bytes),
      payment: outcome
        ? {
            state: outcome.state,
            terms: outcome.payment.terms,
            receipt: outcome.receipt ?? null,
            reason: outcome.reason ?? null,
          }
        : null,
    }),
  );
}

/** JSON holds text; what is none goes into it as base64. */
function readable(bytes: Uint8Array): { body: string } | { bodyBase64: string } {
  try {
    return { body: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch {
    return { bodyBase64: Buffer.from(bytes).toString("base64") };
  }
}

function printReceipt(
  { terminal }: PayContext,
  { state, payment, receipt }: PaymentOutcome,
  tokens: readonly SpendableToken[],
): void {
  if (state !== "settled") return;
  const { network, payTo } = payment.terms;
  terminal.err(
    formatFacts(terminal, {
      paid: `${formatPrice(payment.terms, tokens)} to ${payTo}`,
      in: `${printable(receipt?.transaction ?? "")} on ${network}`,
    }),
  );
}
