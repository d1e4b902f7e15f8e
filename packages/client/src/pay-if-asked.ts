import { isSameAddress } from "@coinslot/protocol";
import { type BudgetHold, holdBudget } from "./budget/hold-budget.ts";
import type { TopUpEnd } from "./budget/top-up-limit.ts";
import { type FoundFunds, findBroughtFunds, findFunds } from "./chain/find-funds.ts";
import { createFreeRoom } from "./channels/free-room.ts";
import { noteOtherPurchase, tryChannel } from "./channels/try-channel.ts";
import { checkResource } from "./offer/check-resource.ts";
import { type Candidate, chooseRequirements } from "./offer/choose-requirements.ts";
import { OfferRefusedError, type Refusal } from "./offer/offer-refused-error.ts";
import { findPaidUrl } from "./offer/paid-url.ts";
import type { PayingFetchContext } from "./paying-fetch-options.ts";
import { PaymentError } from "./payment-error.ts";
import { deliverPayment } from "./send/deliver-payment.ts";
import { dropBody } from "./send/drop-body.ts";
import { OutcomeUnclearError } from "./send/outcome-unclear-error.ts";
import { paymentOf } from "./send/payment-outcome.ts";
import { checkRepeatable, type RepeatableRequest, toInit } from "./send/repeatable-request.ts";
import { bookAndSign } from "./sign/book-and-sign.ts";
import type { PaymentTerms } from "./sign/signed-payment.ts";
import { type TopUp, type TopUpNeed, toTopUpNeed } from "./top-up.ts";
import type { TopUpTurn } from "./top-up-turns.ts";
import { carriesPayment, readWays } from "./wires/registry.ts";

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

/** State of earlier rounds of one call. Each round fetches the offer anew. */
interface Earlier {
  toppedUp?: ToppedUp;
  /** Number of offers whose nonce was booked already. */
  collisions: number;
  /** Frees room of channels at its first call, and resolves to whether there is more. */
  freeRoom?: () => Promise<boolean>;
  /** The turn of this call to top up for the host, until it pays. */
  turn?: TopUpTurn | undefined;
}

/**
 * Sends a request, and pays for a 402 whose offer is within the budget and the funds.
 *
 * @throws PaymentError as a fetch that pays does
 */
export async function payIfAsked(
  context: PayingFetchContext,
  request: RepeatableRequest,
  earlier: Earlier = { collisions: 0 },
): Promise<Response> {
  const { toppedUp, turn } = earlier;
  const since = context.topUpTurns.now();
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
  const others = context.channels ? ways.filter(({ channel }) => channel === undefined) : ways;
  const choice = chooseRequirements({ ways: others, protocols, assets, networks });
  const { candidates } = choice;
  for (const { way } of candidates) checkResource(way, url);
  if (toppedUp) checkNoWorse(candidates, toppedUp.candidates);
  const [other] = candidates;
  const freeRoom = earlier.freeRoom ?? createFreeRoom(context, request.signal);
  // A top-up brings the funds for another way.
  const byChannel =
    turn || toppedUp ? [] : await tryChannel(context, { ways, other, request, url, freeRoom });
  if (!Array.isArray(byChannel)) return byChannel;
  const refusals = [...choice.refusals, ...byChannel];

  const promised = turn?.promised;
  const question = { candidates, payer: account.address, chains, promised };
  const { wait } = context;
  const found = await (toppedUp
    ? findBroughtFunds(question, { wait, signal: request.signal })
    : findFunds(question));
  if (found.funded.length > 0) {
    const held = toppedUp?.held ?? [];
    const mayFetchAnew = earlier.collisions < maxCollisions;
    turn?.leave(found.funded);
    const wanted = { candidates: found.funded, request, url, held, mayFetchAnew, freeRoom };
    const payment = await bookAndSign(context, wanted);
    if (payment === "nonce_in_use") {
      // What this call has brought stays promised to it: it asks for no other top-up.
      if (toppedUp === undefined) turn?.end();
      const collisions = earlier.collisions + 1;
      await awaitFreshOffer(context, { collisions, request });
      return payIfAsked(context, request, { ...earlier, freeRoom, collisions, turn: undefined });
    }
    const paid = await deliverPayment(context, { request, payment, wasSent: false });
    await noteOtherPurchase(context, { ways, response: paid, url });
    return paid;
  }
  const refuse = () => new OfferRefusedError([...refusals, ...found.refusals]);
  // Where a balance cannot be read, the funds may be there: no top-up without proof of a shortfall.
  const isUnsure = found.refusals.some(({ code }) => code === "balance_unreadable");
  if (!topUp || toppedUp || isUnsure || found.shortfalls.length === 0) throw refuse();
  const { signal } = request;
  const options = { context, request, topUp, candidates, refusals, found, url, freeRoom };
  if (turn === undefined) {
    const wanted = { host: url.hostname, since, signal, refuse };
    // The funds that another call brings meanwhile may be enough for this one.
    return context.topUpTurns.run(wanted, (own) =>
      own.isLater
        ? payIfAsked(context, request, { collisions: 0, freeRoom, turn: own })
        : topUpAndPay({ ...options, turn: own }),
    );
  }
  if (await turn.awaitOthers()) {
    return payIfAsked(context, request, { collisions: 0, freeRoom, turn });
  }
  if (turn.declined) throw turn.declined.error ?? refuse();
  return topUpAndPay({ ...options, turn });
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
  freeRoom: () => Promise<boolean>;
  turn: TopUpTurn;
}): Promise<Response> {
  const { context, request, candidates, refusals, found, url, freeRoom, turn } = options;
  const { topUpLimit } = context;
  const { hostname } = url;
  const endTopUp = topUpLimit.begin(hostname);
  let end: TopUpEnd = "neither";
  let hold: BudgetHold | undefined;
  try {
    const wanted = { shortfalls: found.shortfalls, host: hostname };
    hold = await holdBudget(context, wanted);
    const isOver = hold.shortfalls.length === 0;
    if (isOver && (await freeRoom())) hold = await holdBudget(context, wanted);
    const needs = hold.shortfalls.map(toTopUpNeed);
    if (needs.length === 0) throw new OfferRefusedError([...refusals, ...hold.refusals]);
    const isThere = await askForFunds({ ...options, needs });
    if (!isThere) throw new OfferRefusedError([...refusals, ...found.refusals]);
    end = "unused";
    const response = await payIfAsked(context, request, {
      toppedUp: { candidates, held: hold.nonces },
      collisions: 0,
      freeRoom,
      turn,
    });
    const paid = paymentOf(response);
    if (paid && paid.state !== "rejected" && neededTopUp(found, paid.payment.terms)) end = "used";
    return response;
  } catch (error) {
    const isUnclear = error instanceof OutcomeUnclearError;
    if (isUnclear && neededTopUp(found, error.payment.terms)) end = "neither";
    throw error;
  } finally {
    endTopUp(end);
    if (end === "unused") await hold?.spend();
    await hold?.release();
  }
}

/** Asks once for all calls that wait: they share a refusal, but for an abort. */
async function askForFunds(options: {
  context: PayingFetchContext;
  request: RepeatableRequest;
  topUp: TopUp;
  url: URL;
  turn: TopUpTurn;
  needs: readonly TopUpNeed[];
}): Promise<boolean> {
  const { context, request, topUp, url, turn, needs } = options;
  const { signal } = request;
  try {
    const isThere = await topUp({ payer: context.account.address, host: url.host, needs, signal });
    if (!isThere && !signal?.aborted) turn.decline(undefined);
    return isThere;
  } catch (error) {
    if (!signal?.aborted) turn.decline(error);
    throw error;
  }
}

/** Returns whether the payment takes more than was there before. */
function neededTopUp({ shortfalls }: FoundFunds, terms: PaymentTerms): boolean {
  return shortfalls.some(
    ({ candidate: { asset }, balance }) =>
      asset.network === terms.network &&
      isSameAddress(asset.address, terms.asset) &&
      BigInt(terms.amount) > balance,
  );
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
