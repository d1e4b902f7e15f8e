import { createKeyCovers } from "./key-cover.ts";
import { type RouteTerms, readRoutePayment } from "./read-route-payment.ts";
import { readRouteKey } from "./route-key.ts";

/** A parsed paid route. */
export interface Route extends RouteTerms {
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
