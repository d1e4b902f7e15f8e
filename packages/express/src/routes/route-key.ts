import { METHODS } from "node:http";
import { dialectOf, problemOfPath } from "./path-dialect.ts";

/** A parsed route key. */
export interface RouteKeyParts {
  /** Upper case, or `*` for all. */
  verb: string;
  path: string;
}

/** Either the parts of a key, or the reason why it can never match a request. */
export type ReadRouteKey = { ok: true; parts: RouteKeyParts } | { ok: false; problem: string };

const verbs = new Set(METHODS);
const passOther = "An application on another Express is passed as options.app";

/**
 * Reads a route key: a verb or `*`, a space, and a path; or a path alone, for all verbs. Express
 * defines the syntax of paths.
 *
 * @param router of the Express that reads the keys
 */
export function readRouteKey(key: string, router: object): ReadRouteKey {
  const [, named, path] = /^(?:(\S+)\s+)?(\S.*)$/.exec(key.trim()) ?? [];
  const verb = (named ?? "*").toUpperCase();
  if (path === undefined) return refuse('is empty: write "GET /path", "* /path" or "/path"');
  if (verb !== "*" && !verbs.has(verb)) return refuse(`has the unknown method "${named}"`);
  if (!path.startsWith("/") && !path.startsWith("*")) {
    return refuse(`has a path that does not begin with "/": "${path}"`);
  }
  if (/#|\?[^/]*=/.test(path)) {
    return refuse("names a query or a fragment: requests are matched by their path alone");
  }
  if (/(^|\/)\.{1,2}(\/|$)/.test(path) || path.includes("//")) {
    return refuse('has an empty, "." or ".." segment, which no client sends');
  }
  const bracketed = /\/(?:\[(\w+)\]|\{(\w+)\})(?=\/|$)/.exec(path);
  if (bracketed !== null) {
    return refuse(`has a parameter in brackets: write ":${bracketed[1] ?? bracketed[2]}"`);
  }
  const problem = problemOfPath(router, path);
  if (problem !== undefined) {
    return refuse(
      `has a path that ${dialectOf(router)} does not understand: ${problem}. ${passOther}`,
    );
  }
  const text = dialectOf(router) === "Express 4" ? findSyntaxOf5(path) : undefined;
  if (text !== undefined) {
    return refuse(`has a path that Express 4 takes for text: ${text}. ${passOther}`);
  }
  return { ok: true, parts: { verb, path } };
}

/**
 * Syntax of Express 5 that Express 4 parses as something else. Such a key would match hardly any
 * request, and its handler would be free.
 */
function findSyntaxOf5(path: string): string | undefined {
  const name = /\/\*([A-Za-z_]\w*)(?=\/|$)/.exec(path)?.[1];
  if (name !== undefined) return `a wildcard with a name ("*${name}"); write "*"`;
  // An expression may have a quantifier: "/:year(\\d{4})".
  if (/(?<!\\)\{[^\d,]/.test(path)) {
    return 'an optional part in braces; write "/:name?" or ".:name?"';
  }
  return undefined;
}

function refuse(problem: string): ReadRouteKey {
  return { ok: false, problem };
}
