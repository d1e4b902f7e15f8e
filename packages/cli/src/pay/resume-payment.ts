import { createPayingFetch } from "@coinslot/client";
import { knownAsset } from "@coinslot/protocol";
import { concludePayment } from "./conclude-payment.ts";
import { explainFailure } from "./explain-failure.ts";
import { forgetPayment, type KeptPayment } from "./kept-payment.ts";
import type { PayContext } from "./pay-context.ts";

/** Sends a payment again, with the request that it was made for. Signs nothing: it needs no wallet. */
export async function resumePayment(context: PayContext, kept: KeptPayment): Promise<void> {
  const { terminal, surroundings, allowInsecureHttp } = context;
  const { request, payment } = kept;
  const { network, payer } = payment.terms;
  const known = knownAsset(network);
  const payingFetch = createPayingFetch({
    account: {
      address: payer,
      async signTypedData() {
        throw new Error("A payment that is resumed is signed already");
      },
    },
    // Nothing is asked of a chain: the payment exists, and the seller decides.
    rpcUrls: { [network]: "http://localhost" },
    allowInsecureHttp,
  });
  const { method, url, headers, body } = request;
  const init: RequestInit = { method, headers, signal: terminal.signal };
  if (body) init.body = new Blob([body]);
  const stopWaiting = surroundings.showWaiting(`asking ${new URL(url).host}`);
  try {
    const response = await payingFetch.resume(payment, url, init);
    stopWaiting();
    const tokens = known ? [{ network, ...known }] : [];
    await concludePayment(context, { request, response, tokens });
    await forgetPayment(kept.file);
  } catch (error) {
    stopWaiting();
    throw await explainFailure(context, { request, error });
  }
}
