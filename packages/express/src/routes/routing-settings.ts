import type { Application } from "express";
import { applicationRouter, isApplication, rootsOf } from "./application-router.ts";

/** Distinctions of a router: letter case, and a slash at the end. */
export interface RoutingSettings {
  caseSensitive: boolean;
  strict: boolean;
}

/** Returns whether a handler is a static server of Express, by its name. */
export function isStaticServer(handle: object): boolean {
  return Reflect.get(handle, "name") === "serveStatic";
}

/**
 * Returns whether a handler cannot be inspected: an application, or a static server. They
 * distinguish as something else does, such as a file system.
 */
export function isOpaque(handle: object): boolean {
  const isMounted = Reflect.get(handle, "name") === "mounted_app";
  return isMounted || isStaticServer(handle) || isApplication(handle);
}

/**
 * Returns whether every router in an application distinguishes at least this much. A path that
 * differs only so then reaches no handler. An opaque layer (another application, a function with a
 * mount path of its own) counts as distinguishing nothing. So does a regular expression of the
 * application, which no setting binds. No router with a mount path of its own distinguishes a slash
 * at the end of that.
 *
 * @param gate has to be one of the layers. Else this application may have been called as a
 * function, and have passed the request on to another one: Express leaves it in the request.
 */
export function hasOnlyRoutersLike(
  app: Application,
  settings: RoutingSettings,
  gate?: object | undefined,
): boolean {
  const seen = new Set<object>();
  const isAlike = [...rootsOf(app)].every((root) =>
    isLike(applicationRouter(root), settings, seen),
  );
  return isAlike && (gate === undefined || seen.has(gate));
}

/** @param seen gets the routers, and the functions of their layers */
function isLike(router: object, settings: RoutingSettings, seen: Set<object>): boolean {
  if (seen.has(router)) return true;
  seen.add(router);
  if (settings.caseSensitive && Reflect.get(router, "caseSensitive") !== true) return false;
  if (settings.strict && Reflect.get(router, "strict") !== true) return false;
  return isEveryLayer(router, (layer) => {
    if (hasOwnExpression(layer, settings)) return false;
    const route: unknown = Reflect.get(layer, "route");
    // The handlers of a route see the path that its router has seen.
    if (isObject(route)) return isEveryLayer(route, (inner) => isHandlerLike(inner, true));
    return isHandlerLike(layer, isAtRoot(layer));
  });

  function isHandlerLike(layer: object, isAtSamePath: boolean): boolean {
    const handle: unknown = Reflect.get(layer, "handle");
    if (typeof handle !== "function") return false;
    if (Array.isArray(Reflect.get(handle, "stack"))) {
      return (isAtSamePath || !settings.strict) && isLike(handle, settings, seen);
    }
    seen.add(handle);
    return isAtSamePath && !isOpaque(handle);
  }
}

/** Returns whether this holds for every layer of a router, or of a route. */
function isEveryLayer(parent: object, holds: (layer: object) => boolean): boolean {
  const stack: unknown = Reflect.get(parent, "stack");
  return Array.isArray(stack) && stack.every((layer) => isObject(layer) && holds(layer));
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/**
 * Returns whether a layer may match by a regular expression of the application. Either Express
 * keeps that of a route. Of a mounted layer, Express 5 keeps only a function of another name.
 * Express 4 keeps an expression that need not be its own.
 */
function hasOwnExpression(layer: object, { caseSensitive }: RoutingSettings): boolean {
  const route: unknown = Reflect.get(layer, "route");
  const path: unknown = isObject(route) ? Reflect.get(route, "path") : undefined;
  if ([path].flat(Number.POSITIVE_INFINITY).some((each) => each instanceof RegExp)) return true;
  const matchers: unknown = Reflect.get(layer, "matchers");
  if (Array.isArray(matchers)) return !matchers.every(isOfText);
  const pattern: unknown = Reflect.get(layer, "regexp");
  return caseSensitive && pattern instanceof RegExp && pattern.ignoreCase;
}

/** Returns whether a layer's function of Express 5 was made from a text. */
function isOfText(matcher: unknown): boolean {
  return typeof matcher === "function" && matcher.name === "match";
}

/** Returns whether a layer stands at "/", as middleware does. */
function isAtRoot(layer: object): boolean {
  if (Reflect.get(layer, "slash") === true) return true;
  const pattern: unknown = Reflect.get(layer, "regexp");
  return pattern instanceof RegExp && Reflect.get(pattern, "fast_slash") === true;
}
