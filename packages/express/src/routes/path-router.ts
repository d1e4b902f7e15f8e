import { emptyRouterLike } from "./application-router.ts";
import { problemOfPath } from "./path-dialect.ts";
import { normalKeyPath } from "./path-forms.ts";
import { createPathIndex } from "./path-index.ts";
import type { Route } from "./read-routes.ts";
import type { RoutingSettings } from "./routing-settings.ts";

/**
 * The first route that fits one of these paths, of those that the search accepts; `malformed`: one
 * of them cannot be decoded, or takes too long for a key with several wildcards.
 */
export type PathRouter = (
  method: string,
  paths: readonly string[],
  search?: PathSearch,
) => Route | "malformed" | undefined;

export type RouteFilter = (route: Route) => boolean;

/** A search for the key of one request, whose target may have hundreds of forms. */
export interface PathSearch {
  /** The keys that count; `undefined`: all. */
  accepts: RouteFilter | undefined;
  /** Results, so that no router tries a path twice. */
  tried: Map<VerbRouter, Map<string, Found>>;
  work: SearchWork;
}

/** Work on keys with several wildcards so far, in all searches of a request. */
export interface SearchWork {
  steps: number;
}

/** Creates a search that has tried no path. */
export function createPathSearch(
  accepts?: RouteFilter,
  work: SearchWork = { steps: 0 },
): PathSearch {
  return { accepts, tried: new Map(), work };
}

/** Returns whether the work is spent: keys with several wildcards are no longer tried. */
export function isSpent({ work }: PathSearch): boolean {
  return work.steps > maxWork;
}

/** The number of a route. */
type Found = number | "malformed" | undefined;

type VerbRouter = (path: string, search: PathSearch) => Found;

/**
 * Bound of the path cache, for each verb; cached paths are of targets of at most `maxTarget`
 * characters. An odd path has hundreds of forms, and only its first ones are cached.
 */
const maxPaths = 500;
const maxTarget = 1_000;
const maxForms = 10;
/** Bound of a path, without its query, that is tried on a key with two wildcards. */
const maxBesideWildcards = 1_000;
/** Bound of all such tries of one request, in steps: 64 of the longest path, or more of others. */
const maxWork = 64 * maxBesideWildcards ** 2;

/**
 * Looks routes up by method and path, with a router of another one's kind. Each of its routes only
 * returns its number. The match of a path depends on the path alone, and the last few are cached. A
 * router takes as long as the rest of an unpaid answer. Keys that such a router cannot parse match
 * nothing here.
 *
 * The index leaves out routes that cannot match, so that a miss among 10,000 routes does not try
 * them all. The router reads the path for the index, and decides among the others in their order.
 */
export function createPathRouter(options: {
  router: object;
  routes: readonly Route[];
  settings: RoutingSettings;
  /** The path of a route, where it is written in another way than its key. */
  pathOf?: (route: Route) => string;
}): PathRouter {
  const { routes, settings, pathOf = ({ path }) => path } = options;
  const verbs = new Set(routes.map(({ verb }) => verb));
  const byVerb = new Map<string, VerbRouter>();
  return (method, paths, search = createPathSearch()) => {
    const verb = verbOf(method);
    let find = byVerb.get(verb);
    if (find === undefined) {
      find = createVerbRouter(verb);
      byVerb.set(verb, find);
    }
    let first = routes.length;
    for (const path of paths) {
      const index = find(path, search);
      if (index === "malformed") return "malformed";
      if (index !== undefined && index < first) first = index;
    }
    return routes[first];
  };

  /**
   * A method as keys name it, and `*` for all that no key names. Middleware may have taken it from
   * a form. Express serves `get` as `GET`, and invented methods must not fill the memory. Express
   * compares in lower case, in which the sign of Kelvin is a `k`.
   */
  function verbOf(method: string): string {
    const verb = method.toLowerCase().toUpperCase();
    return verb === "HEAD" || verbs.has(verb) ? verb : "*";
  }

  // One router for each verb, so that every match ends its search, and the search is synchronous.
  function createVerbRouter(wanted: string): VerbRouter {
    const router = emptyRouterLike(options.router, settings);
    let found: Found;
    const index = createPathIndex<Pattern>();
    routes.forEach((each, number) => {
      if (!fits(each.verb, wanted)) return;
      for (const path of new Set([pathOf(each), normalKeyPath(pathOf(each))])) {
        index.add(path, patternOf(path, number));
      }
    });
    const isEmpty = index.all().length === 0;
    const response = {};
    const known = new Map<string, Found>();
    return findOnce;

    function findOnce(path: string, search: PathSearch): Found {
      if (isEmpty) return undefined;
      const tried = search.tried.get(findOnce) ?? new Map<string, Found>();
      if (tried.size === 0) search.tried.set(findOnce, tried);
      if (tried.has(path)) return tried.get(path);
      const key = search.accepts === undefined ? keyOf(path) : undefined;
      const isKnown = key !== undefined && known.has(key);
      const result = isKnown ? known.get(key) : find(path, search);
      tried.set(path, result);
      if (key === undefined || isKnown || tried.size > maxForms) return result;
      // Without that work, the path may fit.
      if (isSpent(search)) return result;
      // Paths come from outside: invented ones must not fill the memory.
      if (known.size >= maxPaths) known.clear();
      known.set(key, result);
      return result;
    }

    function find(path: string, search: PathSearch): Found {
      found = undefined;
      const pathname = readPathname(path);
      const fitting = pathname === undefined ? index.all() : index.find(pathname);
      const read = pathname ?? path;
      let quick: object[] = [];
      for (const pattern of fitting) {
        const each = routes[pattern.number];
        if (each === undefined || search.accepts?.(each) === false) continue;
        if (pattern.wildcards > 1 && startsLike(pattern, read)) {
          route(path, quick);
          quick = [];
          if (found === undefined && !mayTry(pattern, read, search)) found = "malformed";
          if (found !== undefined) return found;
        }
        quick.push(...layersOf(pattern));
      }
      route(path, quick);
      return found;
    }

    /** Sends a path through these layers. */
    function route(url: string, layers: object[]): void {
      // A router without layers would answer later.
      if (layers.length === 0) return;
      router.stack = layers;
      router.handle({ method: "GET", url }, response, (error) => {
        if (error) found = "malformed";
      });
    }

    /** The path in a request target as this router reads it, which may be an absolute URL. */
    function readPathname(url: string): string | undefined {
      let pathname: string | undefined;
      const match = (path: string) => {
        pathname = path;
        return false;
      };
      route(url, [{ match }]);
      return pathname;
    }

    /** The layer of a pattern, made with its first use; none where the router cannot parse it. */
    function layersOf(pattern: Pattern): object[] {
      if (pattern.layers !== undefined) return pattern.layers;
      router.stack = [];
      if (problemOfPath(router, pattern.path) === undefined) {
        router.all(pattern.path, () => {
          found = pattern.number;
        });
        // Else nothing would be sold, and all be served.
        if (router.stack.length === 0) throw new Error("This router keeps no stack of layers");
      }
      pattern.layers = router.stack;
      return pattern.layers;
    }
  }
}

/** One way to write the path of a route. */
interface Pattern {
  path: string;
  /** Of the route. */
  number: number;
  /** Every path that fits begins with this text. */
  start: string;
  /** Count of the parts that take any text, also with slashes. */
  wildcards: number;
  layers: object[] | undefined;
}

/**
 * Plain text at the start of a key, up to a slash or the brace of an optional part. It has that
 * slash, unless `?`, a group or a quantifier of Express 4 may make it optional. Behind `|` of
 * Express 4, another expression begins.
 */
const plainStart = /^(?:\/[\w.~%@,;=&'-]+)*(?:\/(?=(?:[^|?({]|\{\D)*$)|(?=(?:\/|\{\D)[^|]*$))/;

/** Groups of Express 4 that take at least one character, also slashes: `(.+)`, `([^?]{2,})`. */
const repeated =
  /(?:(?<!\\)\.|\\[DSW]|\[\^[^\]/]*\]|\[(?!\^)[^\]]*(?:\/|\\[DSW])[^\]]*\])(?:\+|\{\d+,\})/g;

function patternOf(path: string, number: number): Pattern {
  const start = plainStart.exec(path)?.[0].toLowerCase() ?? "";
  const wildcards = path.split("*").length - 1 + (path.match(repeated)?.length ?? 0);
  return { path, number, start, wildcards, layers: undefined };
}

/**
 * Returns whether a path begins as a key does. Routers refuse another start at once, in one call
 * for many keys.
 */
function startsLike({ start }: Pattern, path: string): boolean {
  return path.slice(0, start.length).toLowerCase() === start;
}

/**
 * Returns whether a router may try a key with several wildcards, and counts its work. Two wildcards
 * take quadratic time in Express 4 and the first versions of Express 5. A third one takes cubic
 * time. Both Expresses have one bound: else a path that one refuses might fit a later, cheaper key
 * of the other.
 */
function mayTry({ wildcards }: Pattern, path: string, search: PathSearch): boolean {
  if (path.length > maxBesideWildcards / 5 ** (wildcards - 2)) return false;
  search.work.steps += path.length ** wildcards;
  return !isSpent(search);
}

/**
 * A path as routers see it, without its query; `undefined` for one that is not cached. A short path
 * of a long target is not cached either: a substring keeps the whole string in memory.
 */
function keyOf(target: string): string | undefined {
  if (!target.startsWith("/") || target.length > maxTarget) return undefined;
  const end = target.indexOf("?");
  return end === -1 ? target : target.slice(0, end);
}

function fits(verb: string, wanted: string): boolean {
  return verb === "*" || verb === wanted || (verb === "GET" && wanted === "HEAD");
}
