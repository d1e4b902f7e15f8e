import type { AuthorizationId } from "@coinslot/protocol";
import type { PayingFetchContext } from "../paying-fetch-options.ts";
import { wireOf } from "../wires/registry.ts";
import type { PaymentOutcome } from "./payment-outcome.ts";

/** Maximum number of polls, and the pause between two: an endpoint may lag the seller's. */
const maxPolls = 20;
const pollIntervalMs = 500;

/**
 * Believes a receipt only once the chain shows the authorization as used, where the protocol's
 * receipts need that. Otherwise the outcome is unclear, and there is no receipt.
 */
export async function confirmReceipt(
  context: Pick<PayingFetchContext, "chains" | "wait">,
  outcome: PaymentOutcome,
  signal: AbortSignal | undefined,
): Promise<PaymentOutcome> {
  const { payment } = outcome;
  if (outcome.state !== "settled" || !wireOf(payment).asksChain) return outcome;
  const { network, asset, payer, nonce } = payment.terms;
  if (await becomesUsed(context, { network, asset, payer, nonce }, signal)) return outcome;
  return { state: "unclear", protocol: outcome.protocol, payment };
}

async function becomesUsed(
  { chains, wait }: Pick<PayingFetchContext, "chains" | "wait">,
  id: AuthorizationId,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  for (let count = 1; ; count += 1) {
    const isUsed = await chains.isUsed(id);
    // Polls help where an endpoint lags, and not where none answers.
    if (isUsed !== false || count === maxPolls) return isUsed === true;
    try {
      await wait(pollIntervalMs, signal);
    } catch {
      return false;
    }
  }
}
