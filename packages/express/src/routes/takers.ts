import type { Application } from "express";
import { applicationRouter, layersOf } from "./application-router.ts";
import { pathOf } from "./path-forms.ts";
import { servesAllMethods, servesMethod } from "./route-methods.ts";
import { isOpaque, isStaticServer } from "./routing-settings.ts";

/** A function that takes a path, and the path as it sees it. */
interface Taker {
  handle: unknown;
  /** The route that it belongs to, of an application or a router. */
  route: object | undefined;
  path: string;
  /** True if it has a mount of its own, which leaves a part of the path. */
  isMounted: boolean;
  /** True if a router's mount above it is a wildcard or an expression. */
  isBelowWildcard: boolean;
}

/**
 * The functions that take a path, of a router and of those in it, as Express asks them. Layers are
 * matched as the router does, by their own functions. An application that is mounted here cannot be
 * inspected.
 */
function* takersOf(router: object, path: string, isBelowWildcard = false): Iterable<Taker> {
  for (const layer of layersOf(router)) {
    const taken = matchOf(layer, path);
    if (taken === undefined) continue;
    const found: unknown = Reflect.get(layer, "route");
    const route = found instanceof Object ? found : undefined;
    const below = route === undefined ? restOf(path, taken.path) : path;
    const isWildcard = hasWildcard(taken.params);
    const isMounted = route === undefined && taken.path !== "" && taken.path.length < path.length;
    for (const { handle } of route === undefined ? [layer] : layersOf(route)) {
      yield { handle, route, path: below, isMounted, isBelowWildcard };
      if (isRouter(handle)) yield* takersOf(handle, below, isBelowWildcard || isWildcard);
    }
  }
}

/** Wildcards are arrays in Express 5, and have numbers for names in Express 4, as groups do. */
function hasWildcard(params: object): boolean {
  return Object.entries(params).some(([name, value]) => Array.isArray(value) || /^\d+$/.test(name));
}

/** A request where the gate meets it. */
export interface GatedRequest {
  method: string;
  baseUrl: string;
  url: string;
  /** The middleware, as it stands in the application. */
  gate: object | undefined;
}

/**
 * The path as an application may see it, where mounts of applications and routers make the base.
 * One whose router holds the gate has brought the path to it. `undefined`: it has too many mounts.
 */
export function pathsSeen(router: object, request: GatedRequest): string[] | undefined {
  if (hasManyMounts(request)) return undefined;
  const ways = [...waysOf(router, request)];
  const reaching = ways.filter((way) => isAtGate(way, request));
  return (reaching.length > 0 ? reaching : ways).map(({ path }) => path);
}

/**
 * Returns whether a key's route behind the gate takes a request's path as Express reads it. No
 * static server there may take it. Nor may a mounted application before the route, or a function
 * with a mount of its own: it may be a static server, unless it handles errors. Routes for all
 * methods or with wildcards may be middleware, and pass the path on.
 */
export function isTakenByRoute(app: Application, request: GatedRequest, key: string): boolean {
  const [first] = waysOf(applicationRouter(app), request);
  const { takers } = wayToGate(app, request) ?? first ?? { takers: [] };
  const later = takers.slice(takers.findIndex(({ handle }) => handle === request.gate) + 1);
  const at = later.findIndex(({ route, isBelowWildcard }) => {
    if (route === undefined || !servesMethod(route, request.method)) return false;
    const isKeyOf = (text: string) => !text.includes("*") && isEndOf(text, key, isBelowWildcard);
    return !servesAllMethods(route) && textsOf(route).some(isKeyOf);
  });
  const isStatic = ({ handle }: Taker) => handle instanceof Function && isStaticServer(handle);
  const isUnknown = ({ handle, isMounted }: Taker) => {
    if (!(handle instanceof Function)) return false;
    // Express tells error handlers by their four parameters.
    return isOpaque(handle) || (isMounted && handle.length < 4 && !isRouter(handle));
  };
  return at !== -1 && !later.some(isStatic) && !later.slice(0, at).some(isUnknown);
}

/** Returns whether a key's path is that of a route, under any mount and with any names. */
function isEndOf(text: string, key: string, isBelowWildcard: boolean): boolean {
  const [end = "", whole = ""] = [text, key].map((path) =>
    path.replace(/:\w+/g, ":").replace(/\/$/, "").toLowerCase(),
  );
  // A router's root is the end of its mount, which a key's parameter need not be.
  return whole.endsWith(end) && (end !== "" || !(isBelowWildcard || whole.includes("*")));
}

/**
 * The texts of routes in the routers that see the same path as the gate. A key of such a text is
 * relative to the gate's mount.
 */
export function textsBesideGate(app: Application, request: GatedRequest): ReadonlySet<string> {
  const { path: whole = "", takers = [] } = wayToGate(app, request) ?? {};
  const routers = [{ handle: applicationRouter(app), path: whole }, ...takers].flatMap(
    ({ handle, path }) =>
      path === pathOf(request.url) && handle instanceof Object ? [handle] : [],
  );
  const routes = routers.flatMap(layersOf).map((layer): unknown => Reflect.get(layer, "route"));
  const serving = routes.flatMap((route) =>
    route instanceof Object && servesMethod(route, request.method) ? [route] : [],
  );
  return new Set(serving.flatMap(textsOf));
}

interface Way {
  /** The path that the application sees. */
  path: string;
  takers: readonly Taker[];
}

/** Mounts that are followed: each may begin the application's own path, and walks its tree. */
const maxMounts = 20;

function hasManyMounts({ baseUrl }: GatedRequest): boolean {
  return baseUrl.split("/", maxMounts + 2).length > maxMounts + 1;
}

function* waysOf(router: object, request: GatedRequest): Iterable<Way> {
  if (hasManyMounts(request)) return;
  const mounts = request.baseUrl.split("/");
  for (const at of mounts.keys()) {
    const path = ["", ...mounts.slice(at + 1)].join("/") + pathOf(request.url);
    yield { path, takers: [...takersOf(router, path)] };
  }
}

/** The way to the gate with the most of the path, which the request has taken first. */
function wayToGate(app: Application, request: GatedRequest): Way | undefined {
  for (const way of waysOf(applicationRouter(app), request)) {
    if (isAtGate(way, request)) return way;
  }
  return undefined;
}

function isAtGate({ takers }: Way, { gate, url }: GatedRequest): boolean {
  const rest = pathOf(url);
  return takers.some(({ handle, path }) => handle === gate && path === rest);
}

/** The paths of a route that are texts. */
export function textsOf(route: object): string[] {
  return pathsOf(route).filter((each) => typeof each === "string");
}

/** The paths of a route: texts and regular expressions. */
export function pathsOf(route: object): unknown[] {
  return [Reflect.get(route, "path")].flat(Number.POSITIVE_INFINITY);
}

/** Returns whether a handler is a router, of either Express. */
export function isRouter(handle: unknown): handle is object {
  return handle instanceof Function && Array.isArray(Reflect.get(handle, "stack"));
}

/** The path that a layer leaves to the router behind it. */
export function restOf(path: string, taken: string): string {
  const rest = path.slice(taken.length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/**
 * The part of a path that a layer matches, and its parameters. Older routers return a boolean, and
 * keep both on the layer. They read them at once after a match of their own.
 */
export function matchOf(layer: object, path: string): { path: string; params: object } | undefined {
  const match: unknown = Reflect.get(layer, "match");
  if (typeof match !== "function") return undefined;
  let found: unknown;
  try {
    found = Reflect.apply(match, layer, [path]);
  } catch {
    // A parameter that cannot be decoded reaches no handler.
    return undefined;
  }
  const result = found === true ? layer : found;
  if (!(result instanceof Object)) return undefined;
  const [part, params]: unknown[] = [Reflect.get(result, "path"), Reflect.get(result, "params")];
  if (typeof part !== "string" || typeof params !== "object") return undefined;
  return { path: part, params: params ?? {} };
}
