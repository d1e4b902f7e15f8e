import type { Application } from "express";
import { applicationRouter, emptyRouterLike } from "./application-router.ts";
import type { Route } from "./read-routes.ts";
import type { RoutingSettings } from "./routing-settings.ts";

/** The first route that fits one of these paths; `malformed` when one of them cannot be decoded. */
export type RouteFinder = (
  method: string,
  paths: readonly string[],
) => Route | "malformed" | undefined;

/** Finds routes with a router of the application's own kind, in which each route only says its number. */
export function createRouteFinder(options: {
  app: Application;
  routes: readonly Route[];
  settings: RoutingSettings;
}): RouteFinder {
  const { app, routes, settings } = options;
  const byMethod = new Map<string, (path: string) => number | "malformed" | undefined>();
  return (method, paths) => {
    let find = byMethod.get(method);
    if (find === undefined) {
      find = createFinder(method);
      byMethod.set(method, find);
    }
    let first = routes.length;
    for (const path of paths) {
      const index = find(path);
      if (index === "malformed") return "malformed";
      if (index !== undefined && index < first) first = index;
    }
    return routes[first];
  };

  // One router for each method, so that every match is the end of its search: that is synchronous.
  function createFinder(method: string): (path: string) => number | "malformed" | undefined {
    const router = emptyRouterLike(applicationRouter(app), settings);
    let found: number | "malformed" | undefined;
    let isEmpty = true;
    routes.forEach(({ verb, path }, index) => {
      if (!fits(verb, method)) return;
      isEmpty = false;
      router.all(path, () => {
        found = index;
      });
    });
    const response = {};
    return (path) => {
      if (isEmpty) return undefined;
      found = undefined;
      router.handle({ method: "GET", url: path }, response, (error) => {
        if (error) found = "malformed";
      });
      return found;
    };
  }
}

function fits(verb: string, method: string): boolean {
  return verb === "*" || verb === method || (verb === "GET" && method === "HEAD");
}
