import type { PaymentEvent, PaymentTerms } from "@coinslot/client";
import type { ConfiguredNetwork } from "@coinslot/hosting/environment";
import { UsageError } from "../exit-code.ts";
import { formatFacts } from "../terminal.ts";
import { formatPrice } from "./format-price.ts";
import type { PayContext } from "./pay-context.ts";
import { printable } from "./printable.ts";
import type { BuyerRequest } from "./read-request.ts";
import type { SpendableToken } from "./spendable-tokens.ts";

/**
 * Shows the terms to sign, and asks.
 *
 * @throws UsageError when the answer is no, or no terminal can ask
 */
export async function confirmOffer(
  { terminal, isSilent }: PayContext,
  shown: {
    request: BuyerRequest;
    offer: PaymentEvent["offer"];
    terms: PaymentTerms;
    tokens: readonly SpendableToken[];
    networks: readonly ConfiguredNetwork[];
  },
): Promise<void> {
  const { request, offer, terms, tokens, networks } = shown;
  const description = offer?.description;
  const name = networks.find(({ network }) => network === terms.network)?.name ?? "";
  terminal.err(
    formatFacts(terminal, {
      request: `${request.method} ${request.url}`,
      ...(description ? { "says it is": printable(description) } : {}),
      costs: `${formatPrice(terms, tokens)} on ${name} (${terms.network})`,
      ...(offer?.protocol === "mpp" ? { by: "MPP" } : {}),
      ...(terms.channel ? { by: "a payment channel" } : {}),
      ...(terms.channel?.deposit ? { deposits: `${depositOf(terms, tokens)}, not spent` } : {}),
      to: terms.payTo,
      from: terms.payer,
    }),
  );
  if (isSilent) return;
  if (terminal.confirm === undefined) {
    throw new UsageError("No terminal to prompt: add --yes to pay without a prompt.");
  }
  if (!(await terminal.confirm("Pay?"))) throw new UsageError("Nothing was paid.");
}

function depositOf(terms: PaymentTerms, tokens: readonly SpendableToken[]): string {
  return formatPrice({ ...terms, amount: terms.channel?.deposit ?? "0" }, tokens);
}
