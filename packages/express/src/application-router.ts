import { type Application, Router } from "express";
import type { RoutingSettings } from "./routing-settings.ts";

/** The part of a router that matching uses. Express 4 and 5 have it alike. */
export interface RouterLike {
  all(path: string, handler: () => void): unknown;
  handle(
    request: { method: string; url: string },
    response: object,
    done: (error?: unknown) => void,
  ): void;
}

/** The router of an application: `_router` in Express 4, `router` in Express 5. */
export function applicationRouter(app: Application): object {
  const own: unknown = Reflect.get(app, "_router") ?? app.router;
  return typeof own === "object" || typeof own === "function" ? (own ?? Router()) : Router();
}

/**
 * An empty router of the same implementation as another one. The application's Express may be
 * another than the one that this package finds, and it alone decides what its paths mean.
 */
export function emptyRouterLike(router: object, settings: RoutingSettings): RouterLike {
  const fresh: RouterLike = Object.create(Object.getPrototypeOf(router));
  // What either Express gives to a new router.
  return Object.assign(fresh, {
    params: {},
    _params: [],
    stack: [],
    mergeParams: false,
    ...settings,
  });
}
