import { sources } from "./sources.ts";

const route = /(?:get|post|delete|use|route|path:)\W{0,3}(?<=["( ])"(\/[^"\s]*)"/g;
const routeKey = /"(?:GET|POST) (\/[^"\s]*)"/g;
/** Under which routers are mounted, beside the root. */
const mounts = ["", "/api/v1"];

const servedBySources = sources.flatMap(pathsIn);

/**
 * Returns whether a router of the repository, or one in an example of the same document, serves a
 * path.
 */
export function isServedPath(path: string, examples: readonly { text: string }[]): boolean {
  const served = [...servedBySources, ...examples.flatMap(({ text }) => pathsIn(text))];
  return served.some((pattern) => mounts.some((mount) => toExpression(mount + pattern).test(path)));
}

function pathsIn(text: string): string[] {
  return [...text.matchAll(route), ...text.matchAll(routeKey)].map(([, path = ""]) => path);
}

/** Parameters are written `:name` or `{name}`. */
function toExpression(pattern: string): RegExp {
  const parts = pattern.split(/:\w+|\{\w+\}/).map((part) => part.replace(/[^\w/-]/g, "\\$&"));
  return new RegExp(`^${parts.join("[^/]+")}$`);
}
