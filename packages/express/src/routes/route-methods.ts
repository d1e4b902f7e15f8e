import { METHODS } from "node:http";

/** Returns whether a route of either Express serves a method. */
export function servesMethod(route: object, method: string): boolean {
  const name = method.toLowerCase();
  return has(route, "_all") || has(route, name) || (name === "head" && has(route, "get"));
}

/**
 * Returns whether a route serves all methods: Express marks it so, or, for `app.all`, with every
 * known method.
 */
export function servesAllMethods(route: unknown): boolean {
  if (!(route instanceof Object)) return false;
  return has(route, "_all") || METHODS.every((method) => has(route, method.toLowerCase()));
}

function has(route: object, name: string): boolean {
  // An object without a prototype in Express 5.
  const methods: unknown = Reflect.get(route, "methods");
  return typeof methods === "object" && methods !== null && Reflect.get(methods, name) === true;
}
