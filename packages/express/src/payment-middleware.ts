import { ConfigurationError, type Facilitator } from "@coinslot/protocol";
import type { NextFunction, Request, Response } from "express";
import { answerRefusal, refuseVisit } from "./answer.ts";
import { createDiscovery } from "./discovery/discovery.ts";
import { registerGate } from "./discovery/listed-gate.ts";
import { createGate, type Gate } from "./gate.ts";
import type { PaymentMiddlewareOptions } from "./payment-middleware-options.ts";
import * as refusals from "./refusals.ts";
import { installedRouter, isApplication, routerOfItsExpress } from "./routes/application-router.ts";
import { createRouteMatcher } from "./routes/match-route.ts";
import type { PaymentRoutes, SingleRoutePayment } from "./routes/payment-routes.ts";
import { type Route, readRoutes, readSingleRoute } from "./routes/read-routes.ts";
import { warnUnsoldMethods } from "./routes/warn-unsold-methods.ts";
import { serveVisit } from "./serve-visit.ts";
import { findSold, findSoldHere } from "./sold-requests.ts";

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
  const { onError: report } = gate;
  const reading = { checkedBy, gate: () => middleware };
  const match = createRouteMatcher(read, { ...reading, report });
  const warnUnsold = warnUnsoldMethods(read, { ...reading, onError: report });
  const middleware = (request: Request, response: Response, next: NextFunction): void => {
    const sold = findSoldHere(request, read);
    const matched = match(request, sold);
    if (matched === undefined) {
      warnUnsold(request, response);
      next();
    } else if (matched === "malformed") {
      // Not the buyer's fault, who may have paid in advance.
      if (sold !== undefined) refuseResale(gate, { sold, other: undefined, response });
      else answerRefusal(response, refusals.malformedPath);
    } else if (matched === "closed") answerRefusal(response, refusals.closedRoute);
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

function enter(
  gate: Gate,
  options: { route: Route; request: Request; response: Response; next: NextFunction },
): void {
  const { route, request, response, next } = options;
  const sold = findSold(request, route);
  if (sold?.isHere) {
    // The same gate met this request before.
    next();
    return;
  }
  if (sold !== undefined) {
    refuseResale(gate, { sold: sold.route, other: route, response });
    return;
  }
  if (!Object.hasOwn(request, "complete")) {
    const problem = `"${route.key}" got a request that node:http has not made, such as one of HTTP/2`;
    gate.onError(new ConfigurationError("The server", [problem]));
    gate.count(route, "internal_error");
    answerRefusal(response, refusals.internalError);
    return;
  }
  const visit = gate.open(options);
  if (visit === undefined) {
    gate.count(route, "not_ready");
    answerRefusal(response, refusals.notReady);
    return;
  }
  serveVisit(visit).catch((error: unknown) => {
    visit.settings.onError(error);
    if (response.headersSent) response.destroy();
    else refuseVisit(visit, refusals.internalError);
  });
}

/** Refuses a request that a second key would sell as well, which the seller alone can mend. */
function refuseResale(
  gate: Gate,
  options: { sold: Route; other: Route | undefined; response: Response },
): void {
  const { sold, other, response } = options;
  const name = other === undefined ? "a key of another kind of price" : `"${other.key}"`;
  const problem = `"${sold.key}" sells its requests, and ${name} would sell them once more`;
  gate.onError(new ConfigurationError("A handler", [problem]));
  gate.count(other ?? sold, "internal_error");
  answerRefusal(response, refusals.internalError);
}
