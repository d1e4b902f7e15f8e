import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import {
  type ChannelOptions,
  createPayingFetch,
  type PaymentEvent,
  type PaymentTerms,
  type Protocol,
  type SignedPayment,
} from "@coinslot/client";
import { channelFile } from "../channels/channel-file.ts";
import { InterruptedError, UnclearError, UsageError } from "../exit-code.ts";
import { readNetworks } from "../networks.ts";
import { readWallet } from "../read-secret.ts";
import { concludePayment } from "./conclude-payment.ts";
import { confirmOffer } from "./confirm-offer.ts";
import { explainFailure } from "./explain-failure.ts";
import { forgetPayment, keepPayment } from "./kept-payment.ts";
import type { PayContext } from "./pay-context.ts";
import { notePayment } from "./payment-history.ts";
import type { BuyerRequest } from "./read-request.ts";
import { refuseSecondPayment } from "./refuse-second-payment.ts";
import { readSpendableTokens, toBudget } from "./spendable-tokens.ts";

/**
 * Requests, and pays on request and consent. The signing account asks the person. So the shown
 * terms are the signed terms, and nothing else gets signed.
 */
export async function payFor(
  context: PayContext,
  wanted: {
    request: BuyerRequest;
    maxPrice: string;
    /** Pays by a channel, with that much in escrow at most. */
    maxDeposit?: string | undefined;
    protocols?: readonly Protocol[] | undefined;
  },
): Promise<void> {
  const { terminal, io, allowInsecureHttp } = context;
  const { request, maxPrice, maxDeposit, protocols } = wanted;
  const wallet = readWallet(terminal.env);
  if (wallet === undefined) {
    throw new UsageError("Set WALLET_SEED_PHRASE or WALLET_PRIVATE_KEY, or run coinslot init.");
  }
  const networks = readNetworks(terminal.env);
  const { method, url, headers, body } = request;
  const { host } = new URL(url);
  const tokens = await readSpendableTokens(networks);
  let offer: PaymentEvent["offer"];
  let terms: PaymentTerms | undefined;
  let agreed: string | undefined;
  let kept: string | undefined;
  let signed: SignedPayment | undefined;
  let sent: SignedPayment | undefined;
  let stopWaiting = io.showWaiting(`asking ${host}`);
  const payingFetch = createPayingFetch({
    account: {
      address: wallet.address,
      async signTypedData(message) {
        stopWaiting();
        if (terms === undefined) throw new Error("Nothing was offered");
        // A channel needs a second signature for a deposit, and may need another voucher.
        const isFirst = agreed === undefined;
        const shown = JSON.stringify([terms.payTo, terms.amount, terms.channel?.deposit]);
        if (isFirst) await refuseSecondPayment(context, { request, terms });
        if (shown !== agreed)
          await confirmOffer(context, { request, offer, terms, tokens, networks });
        agreed = shown;
        stopWaiting = io.showWaiting(`paying ${host}`);
        return wallet.signTypedData(message);
      },
    },
    rpcUrls: Object.fromEntries(networks.map(({ network, rpcUrls }) => [network, rpcUrls])),
    protocols,
    budget: toBudget(tokens, maxPrice, maxDeposit),
    channels: maxDeposit === undefined ? undefined : await channelsOf(io),
    allowInsecureHttp,
    onPayment(event) {
      if (event.state === "booked") ({ terms, offer } = event);
      if (event.state === "sent") sent = signed;
    },
    // From here on the money may move, and this process may be killed at any moment.
    async beforeSend(payment) {
      // The voucher before this one was corrected: this one pays for the request in its place.
      if (kept !== undefined && signed !== undefined) {
        await notePayment(context, { state: "rejected", request, terms: signed.terms });
        await forgetPayment(context, kept);
      }
      kept = await keepPayment(context, { request, payment });
      await notePayment(context, { state: "sent", request, terms: payment.terms });
      signed = payment;
    },
  });
  try {
    const { signal } = terminal;
    const init: RequestInit = { method, headers, signal };
    if (body) init.body = new Blob([body]);
    const response = await payingFetch(url, init);
    stopWaiting();
    const known = { ...context, keptFile: kept };
    const conclusion = await concludePayment(known, { request, response, tokens });
    if (kept && conclusion === "ended") await forgetPayment(context, kept);
  } catch (error) {
    stopWaiting();
    if (terminal.signal.aborted && kept === undefined) {
      throw new InterruptedError("Interrupted. No payment was sent: nothing can be charged.");
    }
    const known = { ...context, keptFile: kept };
    const explained = await explainFailure(known, { request, error, sent });
    if (kept && !(explained instanceof UnclearError)) await forgetPayment(context, kept);
    throw explained;
  }
}

/** The channels of this user, in the folder of the history. */
async function channelsOf(io: PayContext["io"]): Promise<ChannelOptions> {
  const file = channelFile(io, undefined);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  return { file, exactFirst: false };
}
