import type { Request, Response } from "express";
import { createRouteMatcher } from "./match-route.ts";
import { expressForms, pathOf, targetsOf } from "./path-forms.ts";
import type { Route } from "./read-routes.ts";
import { servesAllMethods } from "./route-methods.ts";

/**
 * A handler has served free of charge a path that is sold under another verb. The message names the
 * seller's own keys.
 */
export class FreeVerbWarning extends Error {
  override readonly name = "FreeVerbWarning";
}

/** Bound of the paths that are matched a second time. */
const maxLength = 100;

/**
 * Warns the seller of a handler for all verbs (`app.all`) that has served a request free of charge.
 * The request's key sells it under another verb only. It warns once for each key and verb. This may
 * be intended, but must not be silent. Odd and long paths are left out: clients could make the gate
 * match each of them twice.
 *
 * @returns to be called with every request that is not sold, before it goes on.
 */
export function warnUnsoldMethods(
  routes: readonly Route[],
  options: {
    /** A router of the Express that has read the keys. */
    checkedBy: object;
    /** The middleware, as it stands in the application. */
    gate?: () => object;
    onError: (error: unknown) => void;
  },
): (request: Request, response: Response) => void {
  if (routes.every(({ verb }) => verb === "*")) return () => undefined;
  const { onError, ...reading } = options;
  const ofAllVerbs = routes.map((route) => ({ ...route, verb: "*" }));
  const match = createRouteMatcher(ofAllVerbs, { ...reading, report: () => undefined });
  const warned = new Set<string>();
  return (request, response) => {
    response.once("finish", () => {
      if (response.statusCode >= 400 || !servesAllMethods(request.route)) return;
      if (!targetsOf(request).every(isSimple)) return;
      const route = match(request);
      if (typeof route !== "object") return;
      const { method } = request;
      const words = `"${route.key}" does not sell ${method}, and a handler for all methods has served it for free: sell "* ${route.path}", or handle each method separately`;
      if (warned.has(words)) return;
      warned.add(words);
      onError(new FreeVerbWarning(words));
    });
  };
}

function isSimple(target: string): boolean {
  return pathOf(target).length <= maxLength && expressForms(target).length === 1;
}
