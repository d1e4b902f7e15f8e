import { headerName, isSameAddress } from "@coinslot/protocol";
import { bookResumed } from "./budget/book-resumed.ts";
import { holdBudget } from "./budget/hold-budget.ts";
import { type FoundFunds, findBroughtFunds, findFunds } from "./chain/find-funds.ts";
import { checkResource } from "./offer/check-resource.ts";
import { type Candidate, chooseRequirements } from "./offer/choose-requirements.ts";
import { OfferRefusedError, type Refusal } from "./offer/offer-refused-error.ts";
import { findPaidUrl } from "./offer/paid-url.ts";
import {
  type PayingFetchContext,
  type PayingFetchOptions,
  readOptions,
} from "./paying-fetch-options.ts";
import { PaymentError } from "./payment-error.ts";
import {
  type FoundRefunds,
  findRefundsOn,
  type RefundablePayment,
} from "./refunds/find-refunds.ts";
import { deliverPayment } from "./send/deliver-payment.ts";
import { dropBody } from "./send/drop-body.ts";
import { OutcomeUnclearError } from "./send/outcome-unclear-error.ts";
import { paymentOf } from "./send/payment-outcome.ts";
import {
  checkRepeatable,
  hashBody,
  type RepeatableRequest,
  readRequest,
  toInit,
} from "./send/repeatable-request.ts";
import { bookAndSign } from "./sign/book-and-sign.ts";
import { type SignedPayment, signedPaymentSchema } from "./sign/signed-payment.ts";
import { type TopUp, toTopUpNeed } from "./top-up.ts";
import { carriesPayment, readWays } from "./wires/registry.ts";

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
        await bookResumed(context, payment);
        request.signal?.throwIfAborted();
        return deliverPayment(context, { request, payment, wasSent: true });
      },
      async findRefunds(payment: RefundablePayment) {
        const [found] = await findRefundsOn(context.chains.nodesOf(payment.network), [payment]);
        if (found === undefined) throw new TypeError("One payment has one result");
        return found;
      },
    },
  );
}

/** Longest time for the body of a 402: an offer is a few hundred bytes. */
const maxOfferMs = 10_000;

function offerTimeoutOf({ persistence }: PayingFetchContext): number {
  return Math.min(maxOfferMs, persistence.attemptTimeoutMs);
}

/** The funded offer, for which a top-up ran once before the offer is fetched again. */
interface ToppedUp {
  candidates: readonly Candidate[];
  /** Nonces of the bookings that keep the room in the budget. */
  held: readonly string[];
}

/** What earlier rounds of one call have left. Each round fetches the offer anew. */
interface Earlier {
  toppedUp?: ToppedUp;
  /** Number of offers whose nonce was booked already. */
  collisions: number;
}

async function payIfAsked(
  context: PayingFetchContext,
  request: RepeatableRequest,
  earlier: Earlier = { collisions: 0 },
): Promise<Response> {
  const { toppedUp } = earlier;
  const response = await context.fetch(request.url.href, toInit(request));
  if (response.status !== 402 || carriesPayment(request.headers)) return response;
  const { protocols, now } = context;
  const timeoutMs = offerTimeoutOf(context);
  const ways = await readWays(response, { protocols, request, now: now(), timeoutMs });
  if (ways === undefined) return response;
  dropBody(response);

  const { account, assets, chains, allowInsecureHttp, maxBodyBytes, topUp } = context;
  const url = findPaidUrl({ request, response, allowInsecureHttp });
  checkRepeatable(request, maxBodyBytes);
  const { networks } = chains;
  const { candidates, refusals } = chooseRequirements({ ways, protocols, assets, networks });
  for (const { way } of candidates) checkResource(way, url);
  if (toppedUp) checkNoWorse(candidates, toppedUp.candidates);

  const question = { candidates, payer: account.address, chains };
  const { wait } = context;
  const found = await (toppedUp
    ? findBroughtFunds(question, { wait, signal: request.signal })
    : findFunds(question));
  if (found.funded.length > 0) {
    const held = toppedUp?.held ?? [];
    const mayFetchAnew = earlier.collisions < maxCollisions;
    const wanted = { candidates: found.funded, request, url, held, mayFetchAnew };
    const payment = await bookAndSign(context, wanted);
    if (payment === "nonce_in_use") {
      const collisions = earlier.collisions + 1;
      await awaitFreshOffer(context, { collisions, request });
      return payIfAsked(context, request, { ...earlier, collisions });
    }
    return deliverPayment(context, { request, payment, wasSent: false });
  }
  // Where a balance cannot be read, the funds may be there: no top-up without proof of a shortfall.
  const isUnsure = found.refusals.some(({ code }) => code === "balance_unreadable");
  if (!topUp || toppedUp || isUnsure || found.shortfalls.length === 0) {
    throw new OfferRefusedError([...refusals, ...found.refusals]);
  }
  return topUpAndPay({ context, request, topUp, candidates, refusals, found, url });
}

/** Runs the top-up, once, and starts over. Only the reserved room in the budget is kept. */
async function topUpAndPay(options: {
  context: PayingFetchContext;
  request: RepeatableRequest;
  topUp: TopUp;
  candidates: readonly Candidate[];
  refusals: readonly Refusal[];
  found: FoundFunds;
  url: URL;
}): Promise<Response> {
  const { context, request, topUp, candidates, refusals, found, url } = options;
  const { account, topUpLimit } = context;
  const { hostname } = url;
  topUpLimit.check(hostname);
  const hold = await holdBudget(context, { shortfalls: found.shortfalls, host: hostname });
  let isUnused = false;
  try {
    const needs = hold.shortfalls.map(toTopUpNeed);
    if (needs.length === 0) throw new OfferRefusedError([...refusals, ...hold.refusals]);
    const { signal } = request;
    const isThere = await topUp({ payer: account.address, host: url.host, needs, signal });
    if (!isThere) throw new OfferRefusedError([...refusals, ...found.refusals]);
    isUnused = true;
    const response = await payIfAsked(context, request, {
      toppedUp: { candidates, held: hold.nonces },
      collisions: 0,
    });
    isUnused = !response.ok && paymentOf(response) === undefined;
    if (!isUnused) topUpLimit.noteUsed(hostname);
    return response;
  } catch (error) {
    if (error instanceof OutcomeUnclearError) isUnused = false;
    throw error;
  } finally {
    if (isUnused) {
      topUpLimit.noteUnused(hostname);
      await hold.spend();
    }
    await hold.release();
  }
}

/** Number of offers that are fetched in the place of one whose nonce is booked already. */
const maxCollisions = 5;
const collisionPauseMs = 50;

/**
 * Pauses before an offer is fetched in the place of one that another payment answers. Some sellers
 * derive challenges from the time, so parallel requests get the same one. The random pause parts
 * them.
 *
 * @throws the signal's reason when the caller aborts
 */
async function awaitFreshOffer(
  { wait, randomBytes }: PayingFetchContext,
  { collisions, request }: { collisions: number; request: RepeatableRequest },
): Promise<void> {
  const [random = 0] = randomBytes(1);
  try {
    await wait(collisions * (collisionPauseMs + random), request.signal);
  } finally {
    request.signal?.throwIfAborted();
  }
}

// The caller agreed to the funded terms: same token, same recipient, no dearer.
function checkNoWorse(candidates: readonly Candidate[], before: readonly Candidate[]): void {
  const isKnown = (candidate: Candidate) =>
    before.some(
      (earlier) =>
        earlier.asset === candidate.asset &&
        candidate.amount <= earlier.amount &&
        isSameAddress(earlier.way.payTo, candidate.way.payTo),
    );
  if (candidates.every(isKnown)) return;
  throw new PaymentError("offer_changed", "The seller changed its offer during the top-up");
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
