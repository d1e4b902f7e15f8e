import type { Request } from "express";
import type { Route } from "./routes/read-routes.ts";

/** The route sold to each request whose handler runs. */
const sales = new WeakMap<Request, { route: Route; path: string }>();

/** The path under which a request is served, the same in a mounted router as before it. */
function fullPath({ baseUrl, url }: Request): string {
  return (baseUrl + url).replace(/\/(?=\?|$)/, "");
}

/** Notes that a request is sold on this route, under its present path. */
export function noteSold(request: Request, route: Route): void {
  sales.set(request, { route, path: fullPath(request) });
}

/** The route that a request is sold on already. `isHere`: it is this one, under the same path. */
export function findSold(request: Request, route: Route) {
  const sold = sales.get(request);
  return sold && { ...sold, isHere: sold.route === route && sold.path === fullPath(request) };
}

/** The one of these routes that has sold a request under its present path. */
export function findSoldHere(request: Request, routes: readonly Route[]): Route | undefined {
  const sold = sales.get(request);
  if (sold === undefined || sold.path !== fullPath(request)) return undefined;
  return routes.find((route) => route === sold.route);
}
