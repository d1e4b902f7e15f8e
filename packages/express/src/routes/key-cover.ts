import { emptyRouterLike } from "./application-router.ts";
import type { RouteKeyParts } from "./route-key.ts";

/** A path without parameters and wildcards, in either Express. */
const plainPath = /^[\w/.~%@,;=&'-]+$/;

/**
 * Creates a check whether a key takes every request that fits a later one, which then never counts.
 * It reports a cover only in plain cases. The later path is the same, or has no parameters and fits
 * to the letter.
 *
 * @param router of the Express that reads the keys
 */
export function createKeyCover(
  { verb, path }: RouteKeyParts,
  router: object,
): (later: RouteKeyParts) => boolean {
  const fits = plainPath.test(path) ? undefined : createFit(path, router);
  return (later) => {
    const isOfVerb =
      verb === "*" || verb === later.verb || (verb === "GET" && later.verb === "HEAD");
    if (!isOfVerb) return false;
    return (
      path === later.path || (fits !== undefined && plainPath.test(later.path) && fits(later.path))
    );
  };
}

function createFit(path: string, like: object): (url: string) => boolean {
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
