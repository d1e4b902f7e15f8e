import { ConfigurationError } from "@coinslot/protocol";
import type { Application } from "express";
import { applicationRouter, layersOf, routersOf } from "./application-router.ts";
import { dialectOf } from "./path-dialect.ts";
import { createPathRouter } from "./path-router.ts";
import type { Route } from "./read-routes.ts";

/** A wildcard at the end of a key of Express 5, which matches no empty text. */
const lastWildcard = /\/\*([A-Za-z_]\w*)$/;

/**
 * Finds requests for the folder of a key (`/files/` of `/files/*rest`) that the handler of the key
 * takes: its wildcard may be empty (`/files/{*rest}`). NestJS 11 and newer make that of `files/*`.
 *
 * @param options.report called once for each key of such a request
 * @returns whether a request that fits no key is one of these; `undefined` where no key can have
 * one
 */
export function createEmptyWildcards(options: {
  app: Application;
  routes: readonly Route[];
  report: (fault: ConfigurationError) => void;
}): ((method: string, forms: readonly string[]) => boolean) | undefined {
  const { app, report } = options;
  const router = applicationRouter(app);
  const routes = options.routes.filter(({ path }) => lastWildcard.test(path));
  if (routes.length === 0 || dialectOf(router) === "Express 4") return undefined;
  const find = createPathRouter({
    router,
    routes: routes.map((route) => ({ ...route, path: withEmpty(route.path) })),
    settings: { caseSensitive: false, strict: false },
  });
  const reported = new Set<string>();
  return (method, forms) => {
    const found = find(method, forms);
    if (typeof found !== "object" || !takesFolder(app, method, found.path)) return false;
    const { key, path } = found;
    if (!reported.has(key)) {
      reported.add(key);
      report(
        new ConfigurationError("The paid routes", [
          `"${key}" does not sell the folder itself, and its handler takes that, too: it is withheld. Write "${path}" in the key`,
        ]),
      );
    }
    return true;
  };
}

function withEmpty(path: string): string {
  return path.replace(lastWildcard, "/{*$1}");
}

/** Returns whether the first handler of a folder is that of a wildcard which may be empty. */
function takesFolder(app: Application, method: string, wildcard: string): boolean {
  const form = formOf(wildcard);
  const folder = form.replace(/\/\{\*\}$/, "");
  for (const router of routersOf(app)) {
    const first = layersOf(router)
      .flatMap((layer) => formsOf(Reflect.get(layer, "route"), method))
      .find((each) => each === form || each === folder || each === `${folder}/`);
    if (first === form) return true;
  }
  return false;
}

/** The paths of a route that serves this method. */
function formsOf(route: unknown, method: string): string[] {
  if (!(route instanceof Object)) return [];
  // An object without a prototype in Express 5.
  const methods: unknown = Reflect.get(route, "methods");
  if (typeof methods !== "object" || methods === null) return [];
  const serves = (name: string) => Reflect.get(methods, name) === true;
  const name = method.toLowerCase();
  if (!serves("_all") && !serves(name) && !(name === "head" && serves("get"))) return [];
  const paths: unknown[] = [Reflect.get(route, "path")].flat(Number.POSITIVE_INFINITY);
  return paths.flatMap((path) => (typeof path === "string" ? [formOf(path)] : []));
}

/** A path without the names of its parameters, and without letter case. */
function formOf(path: string): string {
  return path
    .toLowerCase()
    .replace(/:[a-z_]\w*/g, ":")
    .replace(/\{\*[a-z_]\w*\}$/, "{*}");
}
