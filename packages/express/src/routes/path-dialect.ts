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
  const shape = shapeOf(path);
  const parsed = parsedShapesOf(router);
  if (shape !== undefined && parsed.has(shape)) return undefined;
  try {
    emptyRouterLike(router, { caseSensitive: false, strict: false }).all(path, () => undefined);
    if (shape !== undefined) parsed.add(shape);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : "not a path";
  }
}

/** Shapes of paths that a kind of router has parsed. Thousands of keys share a few of them. */
const parsedShapes = new WeakMap<object, Set<string>>();

function parsedShapesOf(router: object): Set<string> {
  const kind: object = Object.getPrototypeOf(router) ?? router;
  const known = parsedShapes.get(kind) ?? new Set();
  parsedShapes.set(kind, known);
  return known;
}

/** A path with its texts and names left out; `undefined` where it has more than these. */
function shapeOf(path: string): string | undefined {
  const shape = path.replace(/(?<=\/)(?:(:)[A-Za-z_]\w*|[\w.-]+)(?=\/|$)/g, "$1a");
  return /^(?:\/:?a)+$/.test(shape) ? shape : undefined;
}

/** Text without a sign that either Express treats as part of a pattern, or a parameter. */
const plainSegment = /^(?:[^:*?+(){}[\]\\!|^$"]*|:[A-Za-z_]\w*)$/;

/**
 * Returns whether both Expresses read a path alike: in each segment there is text, or one
 * parameter.
 */
export function isReadAlike(path: string): boolean {
  return path.split("/").every(isPlainSegment);
}

/** Returns whether a segment is text without special signs, or one parameter. */
export function isPlainSegment(segment: string): boolean {
  return plainSegment.test(segment);
}
