import { EventEmitter } from "node:events";
import { type Application, Router } from "express";
import type { RoutingSettings } from "./routing-settings.ts";

/** The part of a router that matching uses. Express 4 and 5 have it alike. */
export interface RouterLike {
  /** Its routes and middleware, in their order. */
  stack: object[];
  all(path: string, handler: () => void): unknown;
  handle(
    request: { method: string; url: string },
    response: object,
    done: (error?: unknown) => void,
  ): void;
}

/** A router of the Express that this package finds, which need not be that of the application. */
export function installedRouter(): object {
  return Router();
}

/** The router of an application: `_router` in Express 4, `router` in Express 5. */
export function applicationRouter(app: Application): object {
  return objectOr(Reflect.get(app, "_router") ?? lazyRouter(app) ?? app.router) ?? Router();
}

/**
 * A router of the Express of an application. Either Express makes the application's own router from
 * the settings of the moment, with its first handler or access. The settings can still change here.
 */
export function routerOfItsExpress(app: Application): object {
  if (typeof Reflect.get(app, "lazyrouter") === "function") return applicationRouter(app);
  const heir: Application = Object.create(app);
  // Without an emitter of its own, the heir would add its listeners to the application's.
  Reflect.apply(EventEmitter, heir, []);
  heir.init();
  return applicationRouter(heir);
}

/** Returns whether a value is an application of either Express. */
export function isApplication(value: unknown): value is Application {
  return typeof value === "function" && "handle" in value && "set" in value;
}

/**
 * Express 4 makes the router of an application with its first handler, from the settings of that
 * time. An heir of the application is asked where it has none yet, so that its settings can still
 * change.
 */
function lazyRouter(app: Application): unknown {
  const make: unknown = Reflect.get(app, "lazyrouter");
  if (typeof make !== "function") return undefined;
  const heir: object = Object.create(app);
  Reflect.apply(make, heir, []);
  return Reflect.get(heir, "_router");
}

/**
 * An empty router of the same implementation as another one. The application's Express may be
 * another than this package finds, and it alone decides the meaning of its paths.
 */
export function emptyRouterLike(router: object, settings: RoutingSettings): RouterLike {
  const fresh: RouterLike = Object.create(Object.getPrototypeOf(router));
  // Properties that either Express gives to a new router.
  return Object.assign(fresh, {
    params: {},
    _params: [],
    stack: [],
    mergeParams: false,
    ...settings,
  });
}

/**
 * An application and its parents: they may serve the requests that it leaves to the next handler.
 */
export function* rootsOf(app: Application): Iterable<Application> {
  let current: unknown = app;
  while (isApplication(current)) {
    yield current;
    current = Reflect.get(current, "parent");
  }
}

/**
 * The routers through which a request may pass: of the application, of its parents, and those
 * nested in them. Applications that are mounted further down cannot be inspected.
 */
export function* routersOf(app: Application): Iterable<object> {
  const seen = new Set<object>();
  for (const root of rootsOf(app)) yield* routersIn(applicationRouter(root), seen);
}

function* routersIn(router: object, seen: Set<object>): Iterable<object> {
  if (seen.has(router)) return;
  seen.add(router);
  yield router;
  for (const layer of layersOf(router)) {
    const route: unknown = Reflect.get(layer, "route");
    for (const { handle } of [layer, ...(route instanceof Object ? layersOf(route) : [])]) {
      if (handle instanceof Function && Array.isArray(Reflect.get(handle, "stack"))) {
        yield* routersIn(handle, seen);
      }
    }
  }
}

/** The layers of a router, or of a route. */
export function layersOf(parent: object): { handle?: unknown }[] {
  const stack: unknown = Reflect.get(parent, "stack");
  return Array.isArray(stack) ? stack.filter((layer) => layer instanceof Object) : [];
}

function objectOr(value: unknown): object | undefined {
  return value instanceof Object ? value : undefined;
}
