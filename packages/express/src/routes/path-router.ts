import { emptyRouterLike } from "./application-router.ts";
import { problemOfPath } from "./path-dialect.ts";
import { normalKeyPath } from "./path-forms.ts";
import { createPathIndex } from "./path-index.ts";
import type { Route } from "./read-routes.ts";
import type { RoutingSettings } from "./routing-settings.ts";

/**
 * The first route that fits one of these paths, of those accepted; `malformed`: one of them cannot
 * be decoded, or is too long for a key with several wildcards.
 */
export type PathRouter = (
  method: string,
  paths: readonly string[],
  accepts?: RouteFilter,
) => Route | "malformed" | undefined;

export type RouteFilter = (route: Route) => boolean;

type VerbRouter = (path: string, accepts?: RouteFilter) => number | "malformed" | undefined;

/**
 * Bound of the path cache, for each verb; cached paths are of targets of at most `maxTarget`
 * characters.
 */
const maxPaths = 500;
const maxTarget = 1_000;
/** Bound of a path, without its query, that is tried on a key with two wildcards. */
const maxBesideWildcards = 1_000;

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
}): PathRouter {
  const { routes, settings } = options;
  const verbs = new Set(routes.map(({ verb }) => verb));
  const byVerb = new Map<string, VerbRouter>();
  return (method, paths, accepts) => {
    const verb = verbOf(method);
    let find = byVerb.get(verb);
    if (find === undefined) {
      find = createVerbRouter(verb);
      byVerb.set(verb, find);
    }
    let first = routes.length;
    for (const path of paths) {
      const index = find(path, accepts);
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
    let found: number | "malformed" | undefined;
    const index = createPathIndex<Pattern>();
    routes.forEach(({ verb, path }, number) => {
      if (!fits(verb, wanted)) return;
      for (const pattern of new Set([path, normalKeyPath(path)])) {
        index.add(pattern, { path: pattern, number, layers: undefined });
      }
    });
    const isEmpty = index.all().length === 0;
    const response = {};
    const known = new Map<string, typeof found>();
    return (path, accepts) => {
      if (isEmpty) return undefined;
      const key = accepts === undefined ? keyOf(path) : undefined;
      if (key !== undefined && known.has(key)) return known.get(key);
      found = undefined;
      const pathname = readPathname(path);
      const fitting = pathname === undefined ? index.all() : index.find(pathname);
      const patterns = fitting.filter(({ number }) => {
        const each = routes[number];
        return each !== undefined && accepts?.(each) !== false;
      });
      const isSlow = (each: Pattern) => isTooLong(pathname ?? path, each.path);
      const slow = patterns.findIndex(isSlow);
      route(path, patterns.slice(0, slow === -1 ? undefined : slow).flatMap(layersOf));
      if (slow !== -1) found ??= "malformed";
      if (key === undefined) return found;
      // Paths come from outside: invented ones must not fill the memory.
      if (known.size >= maxPaths) known.clear();
      known.set(key, found);
      return found;
    };

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
  layers: object[] | undefined;
}

/**
 * Plain text at the start of a key, up to a slash or the brace of an optional part. It has that
 * slash, unless `?`, a group or a quantifier of Express 4 may make it optional. Behind `|` of
 * Express 4, another expression begins.
 */
const plainStart = /^(?:\/[\w.~%@,;=&'-]+)*(?:\/(?=(?:[^|?({]|\{\D)*$)|(?=(?:\/|\{\D)[^|]*$))/;

/**
 * Returns whether a router may take too long for a path. Two wildcards take quadratic time in
 * Express 4 and the first versions of Express 5. A third one takes cubic time. Another start than
 * that of the key is refused at once. Both Expresses have one bound: else a path that one refuses
 * might fit a later, cheaper key of the other.
 */
function isTooLong(path: string, key: string): boolean {
  const further = key.split("*").length - 3;
  if (further < 0 || path.length <= maxBesideWildcards / 5 ** further) return false;
  const [start = ""] = plainStart.exec(key) ?? [];
  return path.toLowerCase().startsWith(start.toLowerCase());
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
