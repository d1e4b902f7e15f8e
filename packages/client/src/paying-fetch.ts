import { headerName } from "@coinslot/protocol";
import { bookResumed } from "./budget/book-resumed.ts";
import { resumeByChannel } from "./channels/buy-by-channel.ts";
import { createFreeRoom } from "./channels/free-room.ts";
import {
  type ChannelSummary,
  listChannels,
  refundChannels,
  withdrawChannel,
} from "./channels/manage-channels.ts";
import type { ChannelRefund } from "./channels/refund-channel.ts";
import type { ChannelWithdrawal } from "./channels/withdraw-channel.ts";
import { payIfAsked } from "./pay-if-asked.ts";
import { type PayingFetchOptions, readOptions } from "./paying-fetch-options.ts";
import { PaymentError } from "./payment-error.ts";
import {
  type FoundRefunds,
  findRefundsOn,
  type RefundablePayment,
} from "./refunds/find-refunds.ts";
import { deliverPayment } from "./send/deliver-payment.ts";
import {
  checkRepeatable,
  hashBody,
  type RepeatableRequest,
  readRequest,
} from "./send/repeatable-request.ts";
import { type SignedPayment, signedPaymentSchema } from "./sign/signed-payment.ts";

/** A `fetch` that pays, with the signature of `fetch`. */
export interface PayingFetch {
  /**
   * As `fetch`, but pays for a 402 answer whose offer is within the budget and the funds. It then
   * returns the paid response. `receiptOf` returns the seller's receipt.
   *
   * A payment that the seller rejects returns its 402 response. So does a 402 that is no offer in
   * one of the protocols. An answer to a paid request that redirects is returned as it is.
   *
   * @throws PaymentError for every unpaid offer, and for a payment with an unknown outcome; else
   * the error of `fetch`. Aborted before a payment is sent, it throws the signal's reason.
   */
  (input: string | URL | Request, init?: RequestInit): Promise<Response>;

  /**
   * Sends a payment again whose outcome was unclear, with the same request that it was made for.
   * Signs nothing: it never pays twice. Books its amount if it can still be executed and is not
   * booked here yet.
   *
   * @throws PaymentError as above, and `request_mismatch` if this is another request.
   */
  resume(
    payment: SignedPayment,
    input: string | URL | Request,
    init?: RequestInit,
  ): Promise<Response>;

  /**
   * Finds the refunds of a payment on the chain, by this payer's own nodes and without the seller.
   * `paymentOf(response)?.payment.terms` are terms of a payment; `transaction` of its receipt
   * shortens the search.
   *
   * @throws PaymentError `chain_unreadable` when no node of its network returned the logs
   */
  findRefunds(payment: RefundablePayment): Promise<FoundRefunds>;
  /** Lists this payer's payment channels, as its file has them. */
  listChannels(): Promise<ChannelSummary[]>;
  /**
   * Asks the seller at a URL to give back what it has not charged, of all channels with its origin.
   * A refund counts once the own node shows it. With `orWithdraw`, channels of which the seller
   * does not give the money back are withdrawn without it: see `withdrawChannel`. `id` asks for one
   * channel alone.
   *
   * @throws PaymentError `chain_unreadable` when no node returned a channel
   */
  refundChannel(
    url: string | URL,
    options?: { orWithdraw?: boolean; id?: string; signal?: AbortSignal },
  ): Promise<(ChannelRefund | ChannelWithdrawal)[]>;
  /**
   * Takes the next step of a withdrawal without the seller: begins it, or, after the channel's
   * delay, brings the money back. Sends a transaction of the account, which needs gas.
   *
   * @throws PaymentError `channel_unknown`; `signing_failed` when the account signs no
   * transactions; `chain_unreadable` when a transaction was not sent or is in no block yet
   */
  withdrawChannel(id: string): Promise<ChannelWithdrawal>;
}

/**
 * Creates a `fetch` that pays.
 *
 * @example
 * ```ts
 * const payingFetch = createPayingFetch({
 *   seedPhrase: process.env.WALLET_SEED_PHRASE,
 *   rpcUrls: { "eip155:9745": "https://rpc.plasma.to" },
 *   budget: { perPayment: "$0.01", perDay: "$1", file: "./budget.json" },
 * });
 *
 * const response = await payingFetch("https://api.example.com/weather");
 * console.log(await response.json(), receiptOf(response)?.transaction);
 * ```
 *
 * @throws PaymentError `invalid_configuration`, which names all faults at once.
 */
export function createPayingFetch(options: PayingFetchOptions): PayingFetch {
  const context = readOptions(options);
  return Object.assign(
    async function payingFetch(input: string | URL | Request, init?: RequestInit) {
      const request = await readRequest(input, init, context.maxBodyBytes);
      return payIfAsked(context, request);
    },
    {
      async resume(given: SignedPayment, input: string | URL | Request, init?: RequestInit) {
        const request = await readRequest(input, init, context.maxBodyBytes);
        checkRepeatable(request, context.maxBodyBytes);
        const payment = checkPaymentFor(request, given);
        if (payment.terms.channel) return resumeByChannel(context, { request, payment });
        const freeRoom = createFreeRoom(context, request.signal);
        await bookResumed(context, { payment, freeRoom });
        request.signal?.throwIfAborted();
        return deliverPayment(context, { request, payment, wasSent: true });
      },
      async findRefunds(payment: RefundablePayment) {
        const [found] = await findRefundsOn(context.chains.nodesOf(payment.network), [payment]);
        if (found === undefined) throw new TypeError("One payment has one result");
        return found;
      },
      listChannels: () => listChannels(context),
      async refundChannel(
        url: string | URL,
        options: { orWithdraw?: boolean; id?: string; signal?: AbortSignal } = {},
      ) {
        const { orWithdraw = false, id, signal } = options;
        const init = signal === undefined ? {} : { signal };
        const request = await readRequest(url, init, context.maxBodyBytes);
        return refundChannels(context, { request, orWithdraw, id });
      },
      withdrawChannel: (id: string) => withdrawChannel(context, id),
    },
  );
}

function checkPaymentFor(request: RepeatableRequest, given: SignedPayment): SignedPayment {
  const parsed = signedPaymentSchema.safeParse(given);
  if (!parsed.success) {
    throw new PaymentError("request_mismatch", "The payment to resume is malformed");
  }
  const payment = parsed.data;
  const { method, url, bodyHash } = payment.request;
  const isSame =
    method === request.method &&
    url === request.url.href &&
    bodyHash === hashBody(request) &&
    new URL(payment.sendTo).origin === request.url.origin;
  // An `Authorization` of the caller's would give way to the payment in the same header.
  const isReplaced =
    payment.header.name === headerName.authorization &&
    request.headers.has(headerName.authorization);
  if (isSame && !isReplaced) return payment;
  throw new PaymentError("request_mismatch", "The payment was made for another request");
}
