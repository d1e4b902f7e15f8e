import { emptyRouterLike } from "./application-router.ts";

/** A router's syntax of path patterns. */
export type PathDialect = "Express 4" | "Express 5";

const dialects = new WeakMap<object, PathDialect>();

/**
 * The dialect of a router, by experiment: a `*` without a name is a wildcard in Express 4 alone.
 */
export function dialectOf(router: object): PathDialect {
  const known = dialects.get(router);
  if (known !== undefined) return known;
  const dialect = problemOfPath(router, "/*") === undefined ? "Express 4" : "Express 5";
  dialects.set(router, dialect);
  return dialect;
}

/** Reason why a router of this kind cannot parse a path; `undefined` when it can. */
export function problemOfPath(router: object, path: string): string | undefined {
  try {
    emptyRouterLike(router, { caseSensitive: false, strict: false }).all(path, () => undefined);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : "not a path";
  }
}

/** Text without a sign that either Express treats as part of a pattern, or a parameter. */
const plainSegment = /^(?:[^:*?+(){}[\]\\!|^$"]*|:[A-Za-z_]\w*)$/;

/**
 * Returns whether both Expresses read a path alike: in each segment there is text, or one
 * parameter.
 */
export function isReadAlike(path: string): boolean {
  return path.split("/").every((segment) => plainSegment.test(segment));
}
