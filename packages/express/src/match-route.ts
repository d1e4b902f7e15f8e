import type { Application, Request } from "express";
import { isPlainTarget, pathForms } from "./path-forms.ts";
import type { Route } from "./read-routes.ts";
import { createRouteFinder, type RouteFinder } from "./route-finder.ts";
import { hasOnlyRoutersLike, type RoutingSettings } from "./routing-settings.ts";

/**
 * The paid route of a request; `malformed` when nobody can say what its path is, or when it cannot be
 * decoded for a route that fits.
 */
export type RouteMatcher = (request: Request) => Route | "malformed" | undefined;

/**
 * Finds the paid route of a request with the router of the application that serves it.
 *
 * It fails closed. A path is held against the keys as it was sent, relative to the mount, and as
 * handlers that decode and normalise paths read it; letter case and trailing slashes do not matter,
 * unless the application and every router in it say that they do. The first key that fits any of
 * these counts.
 */
export function createRouteMatcher(routes: readonly Route[]): RouteMatcher {
  const finders = new WeakMap<Application, ApplicationFinders>();
  return (request) => {
    const { app, url, originalUrl } = request;
    if (!isPlainTarget(originalUrl) || !isPlainTarget(url)) return "malformed";
    let found = finders.get(app);
    if (found === undefined) {
      found = findersOf(app, routes);
      finders.set(app, found);
    }
    const forms = pathForms(request);
    const loose = found.loose(request.method, forms);
    if (loose === undefined || found.exact === undefined) return loose;
    const exact = found.exact.find(request.method, forms);
    return exact === loose || hasOnlyRoutersLike(app, found.exact.settings) ? exact : loose;
  };
}

interface ApplicationFinders {
  loose: RouteFinder;
  /** Where the application distinguishes what others do not. */
  exact: { find: RouteFinder; settings: RoutingSettings } | undefined;
}

function findersOf(app: Application, routes: readonly Route[]): ApplicationFinders {
  const settings = {
    caseSensitive: app.enabled("case sensitive routing"),
    strict: app.enabled("strict routing"),
  };
  const loose = { caseSensitive: false, strict: false };
  return {
    loose: createRouteFinder({ app, routes, settings: loose }),
    exact:
      settings.caseSensitive || settings.strict
        ? { find: createRouteFinder({ app, routes, settings }), settings }
        : undefined,
  };
}
