import { emptyRouterLike } from "./application-router.ts";
import { createPathIndex } from "./path-index.ts";
import type { RouteKeyParts } from "./route-key.ts";

/** The keys read so far, by the requests that they take. */
export interface KeyCovers {
  /**
   * The first key that takes every request that fits a later one, which then never counts. A cover
   * is found only in plain cases. The later path is the same, or has no parameters and fits to the
   * letter.
   */
  coverOf(later: RouteKeyParts): string | undefined;
  add(key: string, parts: RouteKeyParts): void;
}

interface Entry {
  key: string;
  order: number;
  verb: string;
  /** True if a path without parameters fits. */
  fits: (path: string) => boolean;
}

/** A path without parameters and wildcards, in either Express. */
const plainPath = /^[\w/.~%@,;=&'-]+$/;

/**
 * Creates an empty record of keys.
 *
 * @param router of the Express that reads the keys
 */
export function createKeyCovers(router: object): KeyCovers {
  const byPath = new Map<string, Entry[]>();
  const patterns = createPathIndex<Entry>();
  let count = 0;
  return {
    coverOf({ verb, path }) {
      const takes = (entry: Entry) =>
        entry.verb === "*" || entry.verb === verb || (entry.verb === "GET" && verb === "HEAD");
      const same = byPath.get(path)?.find(takes);
      const candidates = plainPath.test(path) ? patterns.find(path) : [];
      const fitting = candidates.find((entry) => takes(entry) && entry.fits(path));
      if (same === undefined || fitting === undefined) return (same ?? fitting)?.key;
      return same.order < fitting.order ? same.key : fitting.key;
    },
    add(key, { verb, path }) {
      const entry = { key, order: count, verb, fits: createFit(path, router) };
      count += 1;
      byPath.set(path, [...(byPath.get(path) ?? []), entry]);
      if (!plainPath.test(path)) patterns.add(path, entry);
    },
  };
}

/** Compiles the path with its first use: most are never compared. */
function createFit(path: string, like: object): Entry["fits"] {
  let fits: Entry["fits"] | undefined;
  return (url) => {
    fits ??= compileFit(path, like);
    return fits(url);
  };
}

function compileFit(path: string, like: object): Entry["fits"] {
  const router = emptyRouterLike(like, { caseSensitive: true, strict: true });
  let isFound = false;
  router.all(path, () => {
    isFound = true;
  });
  return (url) => {
    isFound = false;
    router.handle({ method: "GET", url }, {}, () => undefined);
    return isFound;
  };
}
