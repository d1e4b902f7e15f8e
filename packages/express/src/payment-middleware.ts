import { ConfigurationError, type Facilitator, type InvalidReason } from "@coinslot/protocol";
import type { NextFunction, Request, Response } from "express";
import {
  answerInvalid,
  answerPaymentRequired,
  answerRefunded,
  answerRefusal,
  answerUnpaid,
} from "./answer.ts";
import { createDiscovery } from "./discovery/discovery.ts";
import { registerGate } from "./discovery/listed-gate.ts";
import { askFacilitator } from "./facilitator/ask-facilitator.ts";
import { createGate, type Gate } from "./gate.ts";
import { createPlace, endLoad, takePlace } from "./load/load.ts";
import { refuseLoad } from "./load/overload-report.ts";
import { resourceOf } from "./offer/resource.ts";
import { askSeller } from "./offer/seller-function-error.ts";
import type { PaymentMiddlewareOptions } from "./payment-middleware-options.ts";
import * as refusals from "./refusals.ts";
import { openKeptAnswer } from "./replay/kept-answer.ts";
import { admitPayment, verifyOptions } from "./reservations/admit-payment.ts";
import { releaseSale } from "./reservations/end-reservation.ts";
import { limitKeyOf } from "./reservations/limit-key.ts";
import { handOverKept } from "./response/hand-over.ts";
import { isGone } from "./response/when-gone.ts";
import { installedRouter, isApplication, routerOfItsExpress } from "./routes/application-router.ts";
import { createRouteMatcher } from "./routes/match-route.ts";
import type { PaymentRoutes, SingleRoutePayment } from "./routes/payment-routes.ts";
import { type Route, readRoutes, readSingleRoute } from "./routes/read-routes.ts";
import { warnUnsoldMethods } from "./routes/warn-unsold-methods.ts";
import type { MatchedPayment, Sale, Visit } from "./sale.ts";
import { resumeSale, sellOnAnswer, sellUpfront } from "./sell.ts";
import { matchPayment } from "./wires/match-payment.ts";
import { matchPreviousTerms } from "./wires/match-previous-terms.ts";
import { readPayment } from "./wires/read-payment.ts";

/** Express middleware that sells. */
export interface PaymentMiddleware {
  (request: Request, response: Response, next: NextFunction): void;
  /**
   * Resolves when payments can be taken; until then paid routes answer 503.
   *
   * @throws all obstacles at once: an application logs them and exits with 1.
   */
  ready(): Promise<void>;
  /** Closes a facilitator that was made from the environment; one that was passed in stays open. */
  close(): Promise<void>;
}

/**
 * Express middleware that sells the listed routes. Unpaid requests get 402 with an offer, paid ones
 * get the handler's answer once the money has moved. Other routes pass untouched.
 *
 * `paymentMiddleware.route(payment, facilitator?, options?)` sells every request that reaches it.
 * It stands beside a handler, where no path has to be matched.
 *
 * `paymentMiddleware.discovery(gates, options?)` serves `/openapi.json` and `/llms.txt`, written
 * from the routes of gates.
 *
 * @example
 * ```ts
 * const gate = paymentMiddleware(
 *   {
 *     "GET /weather": {
 *       accepts: { scheme: "exact", network: "eip155:9745", price: "$0.001", payTo },
 *     },
 *   },
 *   facilitator,
 * );
 * app.use(gate);
 * await gate.ready(); // throws all obstacles at once
 * ```
 *
 * @example
 * ```ts
 * app.use(paymentMiddleware.discovery(gate, { title: "Weather" })); // before app.use(gate)
 * ```
 *
 * @param facilitator verifies and settles; made from the environment when left out
 * @throws ConfigurationError with all problems of routes and options
 */
export function paymentMiddleware(
  routes: PaymentRoutes,
  facilitator?: Facilitator,
  options: PaymentMiddlewareOptions = {},
): PaymentMiddleware {
  const problems: string[] = [];
  const { app } = options;
  const checkedBy = isApplication(app) ? routerOfItsExpress(app) : installedRouter();
  const read = readRoutes(routes, checkedBy, (problem) => problems.push(problem));
  const gate = createGate({ routes: read, facilitator, options, problems });
  const match = createRouteMatcher(read, { checkedBy, report: gate.onError });
  const warnUnsold = warnUnsoldMethods(read, { checkedBy, onError: gate.onError });
  const middleware = (request: Request, response: Response, next: NextFunction): void => {
    const matched = match(request);
    if (matched === undefined) {
      warnUnsold(request, response);
      next();
    } else if (matched === "malformed") answerRefusal(response, refusals.malformedPath);
    else if (matched === "closed") answerRefusal(response, refusals.closedRoute);
    else enter(gate, { route: matched, request, response, next });
  };
  registerGate(middleware, { ...gate, routes: read, router: checkedBy, isTable: true });
  return Object.assign(middleware, { ready: gate.ready, close: gate.close });
}

paymentMiddleware.route = (
  payment: SingleRoutePayment,
  facilitator?: Facilitator,
  options: PaymentMiddlewareOptions = {},
): PaymentMiddleware => {
  const problems: string[] = [];
  const routes = readSingleRoute(payment, (problem) => problems.push(problem));
  const gate = createGate({ routes, facilitator, options, problems });
  const middleware = (request: Request, response: Response, next: NextFunction): void => {
    for (const route of routes) enter(gate, { route, request, response, next });
  };
  registerGate(middleware, { ...gate, routes, router: installedRouter(), isTable: false });
  return Object.assign(middleware, { ready: gate.ready, close: gate.close });
};

paymentMiddleware.discovery = createDiscovery;

/** The route sold to each request whose handler runs. */
const sales = new WeakMap<Request, { route: Route; path: string }>();

/** The path under which a request is served, the same in a mounted router as before it. */
function fullPath({ baseUrl, url }: Request): string {
  return (baseUrl + url).replace(/\/(?=\?|$)/, "");
}

function enter(
  gate: Gate,
  options: { route: Route; request: Request; response: Response; next: NextFunction },
): void {
  const { route, request, response, next } = options;
  const sold = sales.get(request);
  if (sold?.route === route && sold.path === fullPath(request)) {
    // The same gate met this request before.
    next();
    return;
  }
  if (sold !== undefined) {
    const problem = `"${sold.route.key}" sells its requests, and "${route.key}" would sell them once more`;
    gate.onError(new ConfigurationError("A handler", [problem]));
    answerRefusal(response, refusals.internalError);
    return;
  }
  const visit = gate.open(options);
  if (visit === undefined) {
    answerRefusal(response, refusals.notReady);
    return;
  }
  serve(visit).catch((error: unknown) => {
    visit.settings.onError(error);
    if (response.headersSent) response.destroy();
    else answerRefusal(response, refusals.internalError);
  });
}

/** From a request to a paid route to its payment. */
async function serve(visit: Visit): Promise<void> {
  const { settings, route, request, response, next, load } = visit;
  const { grantAccess } = settings;
  if (
    grantAccess &&
    (await askSeller("grantAccess", route.key, () => grantAccess(request))) === true
  ) {
    return next();
  }

  const making = visit.makeOffer(request);
  const offer = making instanceof Promise ? await making : making;
  const presented = readPayment(request, { wires: visit.wires, offer });
  if (presented.state === "absent") return answerUnpaid(visit, offer);
  if (presented.state === "malformed") {
    const { refusal, error } = presented;
    if (refusal) return answerRefusal(response, refusal);
    return answerPaymentRequired(visit, { offer, error });
  }
  const place = createPlace();
  if (!takePlace(load, place, settings)) return refuseOverload(visit);
  try {
    await serveBuyer({ ...visit, offer, presented, place });
  } finally {
    endLoad(load, place);
  }
}

/** A request with a payment, in a place. */
type BuyerVisit = Visit & Pick<MatchedPayment, "offer" | "presented" | "place">;

/** From a payment to its admission, and to the sale. */
async function serveBuyer(visit: BuyerVisit): Promise<void> {
  const { settings, facilitator, route, request, response, offer, presented } = visit;
  const { refusePayer, clientKey } = settings;
  const refuse = (reason: string) => answerInvalid(visit, { offer, presented, reason });
  const asked = await matchPayment(presented, offer);
  const { accepts } = route;
  const purchase = asked ?? (await matchPreviousTerms(presented, { offer, accepts }));
  if (purchase === undefined) return refuse(noMatch);
  const { payload, requirements, payment } = purchase;
  const resource = resourceOf(visit);
  const limitKey = await askSeller("clientKey", route.key, () => limitKeyOf(request, clientKey));
  const order: MatchedPayment = {
    payload,
    requirements,
    payment,
    resource,
    limitKey,
    ...visit,
  };
  const { payer } = payment.id;
  const turnedAway =
    refusePayer &&
    (await askSeller("refusePayer", route.key, () =>
      refusePayer({ request, payer, requirements }),
    ));
  if (turnedAway !== undefined) {
    return answerRefusal(response, refusals.refusedPayer(turnedAway));
  }
  const checked = await askFacilitator(order, () =>
    facilitator.verifyLocally(payload, requirements, verifyOptions(order)),
  );
  if (checked === undefined) return;
  const { invalidReason = "invalid_payload" } = checked;
  const isTooLate = !checked.isValid && invalidReason === tooLate;
  if (!checked.isValid && !isTooLate) return refuse(asked ? invalidReason : noMatch);
  // A payment under way, or settled, is delivered at any time and for the terms of its time.
  const refusalIfNew = asked === undefined ? noMatch : isTooLate ? tooLate : undefined;

  const admitted = await admitPayment(order, checked, refusalIfNew);
  if (admitted === undefined) return;
  const { admission, fingerprint } = admitted;
  switch (admission.state) {
    case "refused":
      return refuse(admission.reason);
    case "overloaded":
      return refuseOverload(visit, admission);
    case "in_use":
      return answerRefusal(response, refusals.inUse);
    case "key_conflict":
      return answerRefusal(response, refusals.keyConflict);
    case "used_up":
      return answerPaymentRequired(visit, { offer, error: "payment_used_up", charged: false });
    case "refunded":
      return answerRefunded(order, admission.settlement);
    case "payer_limited":
      return answerRefusal(response, refusals.payerLimited(admission.retryAfterSeconds));
    case "delivered": {
      const kept = openKeptAnswer(admission.answer, admitted.seal);
      if (kept === undefined) {
        const { settlement } = admission;
        const refusal = admitted.seal && presented.wire.refuse({ kind: "delivered", settlement });
        if (refusal) return answerRefusal(response, refusal);
        return refuse("invalid_exact_evm_nonce_already_used");
      }
      const deliver = () => handOverKept(order, kept, admission.settlement);
      if (await visit.replays.send(payment.id, deliver)) return;
      return answerRefusal(response, refusals.inUse);
    }
    case "reserved":
    case "resumed": {
      const progress = { hasRun: false };
      const { reservation } = admission;
      // Anyone resumes a payment without a key: an answer kept under theirs is lost to the buyer.
      const isOwnKey = admission.state === "reserved" || admission.isKeyed;
      const seal = isOwnKey ? admitted.seal : undefined;
      const sale: Sale = { reservation, seal, fingerprint, progress, ...order };
      if (isGone(response)) return releaseSale(sale, "unused");
      sales.set(request, { route, path: fullPath(request) });
      try {
        presented.wire.withhold(request);
        if (admission.state === "resumed") return await resumeSale(sale, admission);
        return await (route.paymentFlow === "upfront" ? sellUpfront(sale) : sellOnAnswer(sale));
      } catch (error) {
        // Nothing else would end the reservation: it would hold the payment for ever.
        await releaseSale(sale, progress.hasRun ? "handler_failed" : "unused");
        throw error;
      }
    }
  }
}

function refuseOverload(
  { load, settings, response }: Visit,
  { isNew }: { isNew: boolean } = { isNew: false },
): void {
  refuseLoad(load, settings, settings.onError);
  answerRefusal(response, isNew ? refusals.overloadedUncharged : refusals.overloaded);
}

const noMatch = "No matching payment requirements";
const tooLate: InvalidReason = "invalid_exact_evm_payload_authorization_valid_before";
