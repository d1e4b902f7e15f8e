import { layersOf } from "./application-router.ts";
import { servesAllMethods, servesMethod } from "./route-methods.ts";
import { isRouter, matchOf, pathsOf, restOf, textsOf } from "./takers.ts";

/** Optional parts of Express 5 at the end of a path, and a wildcard there outside of them. */
const optionalEnd = /(?:\{[^{}]*\})+\/?$/;
const optionalParameter = /^\{:[^{}:*/.-]+\}\/?$/;
const plainWildcard = /\*(?:"([^"]+)"|([^{}":*/.-]+))\/?$/;
/** A path that is a wildcard alone, of either Express. */
const wholeWildcard = /^\/?\{?\/?\*[^/]*$/;
const names = /[:*]"?([^{}":*/.-]+)/g;

/** A request for the folder of a key. */
export interface FolderRequest {
  method: string;
  /** Whether a key takes a path of one more segment. */
  isSoldBelow: boolean;
}

/**
 * Returns whether the first route that takes a path leaves the wildcard at its end empty.
 * `undefined`: no route takes it. Layers are matched as the router does, by their own functions.
 *
 * Middleware takes many paths and passes them on. So routes for all methods, and with another
 * wildcard or a regular expression, do not end the search. Nor does a route for all methods and
 * paths, if another one in the same router takes the path: it would never be reached otherwise. An
 * application that is mounted here cannot be inspected.
 */
export function takesEmpty(
  router: object,
  request: FolderRequest,
  path: string,
): boolean | undefined {
  let mayPass = false;
  for (const layer of layersOf(router)) {
    const taken = matchOf(layer, path);
    if (taken === undefined) continue;
    const route: unknown = Reflect.get(layer, "route");
    const found =
      route instanceof Object
        ? routeTakesEmpty(route, { request, path, params: taken.params })
        : routerTakesEmpty(layer.handle, request, restOf(path, taken.path));
    if (found === true && takesAll(route)) mayPass = true;
    else if (found !== undefined) return found;
  }
  return mayPass ? true : undefined;
}

/** Returns whether this is a route for all methods and paths, as middleware is. */
function takesAll(route: unknown): boolean {
  if (!(route instanceof Object) || !servesAllMethods(route)) return false;
  return textsOf(route).some((text) => wholeWildcard.test(text));
}

function routeTakesEmpty(
  route: object,
  { request, path, params }: { request: FolderRequest; path: string; params: object },
): boolean | undefined {
  if (!servesMethod(route, request.method)) return undefined;
  const paths = pathsOf(route);
  const texts = textsOf(route);
  if (texts.some((text) => isEmptyIn(params, text, request))) return true;
  for (const { handle } of layersOf(route)) {
    const found = routerTakesEmpty(handle, request, path);
    if (found !== undefined) return found;
  }
  const isPlain = texts.length === paths.length && !texts.some((text) => text.includes("*"));
  return isPlain && !servesAllMethods(route) ? false : undefined;
}

/**
 * Returns whether the end of a path has matched nothing: a wildcard, or optional parts behind a
 * slash. A wildcard that starts a router's path takes the slash of its root.
 */
function isEmptyIn(params: object, text: string, { isSoldBelow }: FolderRequest): boolean {
  const end = optionalEnd.exec(text);
  if (end !== null) {
    // Its paths below the folder are served unpaid, too.
    if (!isSoldBelow && optionalParameter.test(end[0])) return false;
    const isOpen = end[0].includes("*") || text[end.index - 1] === "/";
    const found = [...end[0].matchAll(names)];
    const isLeft = ([part, name = ""]: RegExpMatchArray) =>
      part.startsWith("*") ? isNothing(Reflect.get(params, name)) : !(name in params);
    return isOpen && found.length > 0 && found.every(isLeft);
  }
  const [, quoted = "", plain = quoted] = plainWildcard.exec(text) ?? [];
  if (plain in params) return isNothing(Reflect.get(params, plain));
  // A wildcard of Express 4. Its parameters without a name are numbered.
  const last = Object.entries(params).findLast(([name]) => /^\d+$/.test(name));
  // One of several paths of a route has none where another of them has matched.
  return /\*\)?\/?$/.test(text) && last?.[1] !== undefined && isNothing(last[1]);
}

/** Returns whether a wildcard has matched no text but a slash. Express 5 splits that. */
function isNothing(value: unknown): boolean {
  return value === undefined || /^\/?$/.test([value].flat().join("/"));
}

function routerTakesEmpty(
  handle: unknown,
  request: FolderRequest,
  path: string,
): boolean | undefined {
  return isRouter(handle) ? takesEmpty(handle, request, path) : undefined;
}
