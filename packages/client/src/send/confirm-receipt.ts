import type { AuthorizationId } from "@coinslot/protocol";
import type { PayingFetchContext } from "../paying-fetch-options.ts";
import { wireOf } from "../wires/registry.ts";
import type { PaymentOutcome } from "./payment-outcome.ts";

/** Limits of the polls, and the pause between two: an endpoint may lag the seller's. */
const maxPolls = 20;
const maxPollsMs = 10_000;
const pollIntervalMs = 500;

/**
 * Believes a receipt only once the chain shows the authorization as used, where the protocol's
 * receipts need that. Otherwise the outcome is unclear, and there is no receipt. Nor is there one
 * beside a refusal, which contradicts it.
 */
export async function confirmReceipt(
  context: Pick<PayingFetchContext, "chains" | "now" | "wait">,
  outcome: PaymentOutcome,
  signal: AbortSignal | undefined,
): Promise<PaymentOutcome> {
  const { payment } = outcome;
  if (!wireOf(payment).asksChain) return outcome;
  if (outcome.state !== "settled") return { ...outcome, receipt: undefined };
  const { network, asset, payer, nonce } = payment.terms;
  if (await becomesUsed(context, { network, asset, payer, nonce }, signal)) return outcome;
  return { state: "unclear", protocol: outcome.protocol, payment };
}

async function becomesUsed(
  { chains, now, wait }: Pick<PayingFetchContext, "chains" | "now" | "wait">,
  id: AuthorizationId,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const end = now() + maxPollsMs;
  for (let count = 1; ; count += 1) {
    const isUsed = await chains.isUsed(id);
    // Polls help where an endpoint lags, and not where none answers.
    if (isUsed !== false || count === maxPolls || now() >= end) return isUsed === true;
    try {
      await wait(pollIntervalMs, signal);
    } catch {
      return false;
    }
  }
}
