import { isRecord } from "../is-record.ts";
import { createKeyCovers } from "./key-cover.ts";
import { type RouteTerms, readRoutePayment } from "./read-route-payment.ts";
import { readRouteKey } from "./route-key.ts";

/** A parsed paid route. */
export interface Route extends RouteTerms {
  /** As the seller wrote it, or the name of a route beside its handler. */
  key: string;
  /** Upper case, or `*` for all. */
  verb: string;
  path: string;
}

/**
 * Reads all routes in their order, and reports every problem of every one.
 *
 * @param router of the Express that reads the keys
 */
export function readRoutes(
  routes: unknown,
  router: object,
  tell: (problem: string) => void,
): Route[] {
  if (typeof routes !== "object" || routes === null) {
    tell("The routes must be an object from route keys to payments.");
    return [];
  }
  if ("accepts" in routes) {
    tell(
      "The routes are one payment without a key: paymentMiddleware.route sells whatever reaches it",
    );
    return [];
  }
  const earlier = createKeyCovers(router);
  return Object.entries(routes).flatMap(([key, config]) => {
    const read = readRouteKey(key, router);
    if (read.ok) {
      const { parts } = read;
      const first = earlier.coverOf(parts);
      if (first !== undefined) {
        tell(
          `"${key}" can never match: "${first}" comes before it and matches all of its requests`,
        );
      }
      earlier.add(key, parts);
    } else tell(`"${key}" ${read.problem}`);
    const terms = readRoutePayment(config, (problem) => tell(`"${key}": ${problem}`));
    if (!read.ok || terms === undefined) return [];
    return [{ key, ...read.parts, ...terms }];
  });
}

/** A stop switch, and the ledger's dictionary, take no longer one. */
const nameForm = /^\P{Cc}{1,500}$/u;

/** Reads a route beside its handler, which sells every request that reaches it. */
export function readSingleRoute(config: unknown, tell: (problem: string) => void): Route[] {
  const { name = "the route", ...payment } = isRecord(config) ? config : {};
  const isNamed = typeof name === "string" && nameForm.test(name);
  if (!isNamed) tell("The route: name must be 1 to 500 characters, without control characters");
  const terms = readRoutePayment(isRecord(config) ? payment : config, (problem) =>
    tell(`The route: ${problem}`),
  );
  return isNamed && terms ? [{ key: name, verb: "*", path: "*", ...terms }] : [];
}
