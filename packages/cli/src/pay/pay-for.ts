import { createPayingFetch, type PaymentTerms, paymentOf, readOffer } from "@coinslot/client";
import type { Offer } from "@coinslot/protocol";
import { InterruptedError, UnclearError, UsageError } from "../exit-code.ts";
import { readNetworks } from "../networks.ts";
import { readWallet } from "../read-secret.ts";
import { agreeToOffer } from "./agree-to-offer.ts";
import { concludePayment } from "./conclude-payment.ts";
import { explainFailure } from "./explain-failure.ts";
import { forgetPayment, keepPayment } from "./kept-payment.ts";
import type { PayContext } from "./pay-context.ts";
import type { BuyerRequest } from "./read-request.ts";
import { refuseSecondPayment } from "./refuse-second-payment.ts";
import { readSpendableTokens, toBudget } from "./spendable-tokens.ts";

/**
 * Requests, and pays if that is asked for and agreed to. The person is asked by the account that is
 * to sign: what it shows is what it signs, and nothing else gets signed.
 */
export async function payFor(
  context: PayContext,
  { request, maxPrice }: { request: BuyerRequest; maxPrice: string },
): Promise<void> {
  const { terminal, surroundings, allowInsecureHttp } = context;
  const wallet = readWallet(terminal.env);
  if (wallet === undefined) {
    throw new UsageError("Set WALLET_SEED_PHRASE or WALLET_PRIVATE_KEY, or run coinslot init.");
  }
  const networks = readNetworks(terminal.env);
  const { method, url, headers, body } = request;
  const { host } = new URL(url);
  const tokens = await readSpendableTokens(networks);
  let offer: Offer | undefined;
  let terms: PaymentTerms | undefined;
  let kept: string | undefined;
  let isRefused = false;
  let stopWaiting = surroundings.showWaiting(`asking ${host}`);
  const payingFetch = createPayingFetch({
    account: {
      address: wallet.address,
      async signTypedData(message) {
        stopWaiting();
        if (terms === undefined) throw new Error("Nothing was offered");
        await refuseSecondPayment(context, { request, terms });
        await agreeToOffer(context, { request, offer, terms, tokens, networks });
        stopWaiting = surroundings.showWaiting(`paying ${host}`);
        return wallet.signTypedData(message);
      },
    },
    rpcUrls: Object.fromEntries(networks.map(({ network, rpcUrls }) => [network, rpcUrls])),
    budget: toBudget(tokens, maxPrice),
    allowInsecureHttp,
    async fetch(input, init) {
      const response = await fetch(input, init);
      if (response.status === 402) offer = await readOffer(response);
      return response;
    },
    onPayment(event) {
      if (event.state === "booked") terms = event.terms;
    },
    // From here on the money may move, and this process may be killed at any moment.
    async beforeSend(payment) {
      kept = await keepPayment(context, { request, payment });
    },
  });
  try {
    const { signal } = terminal;
    const init: RequestInit = { method, headers, signal };
    if (body) init.body = new Blob([body]);
    const response = await payingFetch(url, init);
    stopWaiting();
    isRefused = paymentOf(response)?.state === "rejected";
    await concludePayment(context, { request, response, tokens });
    if (kept) await forgetPayment(kept);
  } catch (error) {
    stopWaiting();
    if (terminal.signal.aborted && kept === undefined) {
      throw new InterruptedError("Interrupted. No payment was sent: nothing can be charged.");
    }
    const explained = await explainFailure(context, { request, error });
    // A payment that was refused can still be taken: the file keeps a second one from being signed.
    const isOver = !isRefused && !(explained instanceof UnclearError);
    if (kept && isOver) await forgetPayment(kept);
    throw explained;
  }
}
