import { ConfigurationError } from "@coinslot/protocol";
import type { Application, Request } from "express";
import { applicationRouter, rootsOf } from "./application-router.ts";
import { dialectOf } from "./path-dialect.ts";
import { pathOf } from "./path-forms.ts";
import { createPathRouter } from "./path-router.ts";
import type { Route } from "./read-routes.ts";
import { takesEmpty } from "./takes-empty.ts";

/** A wildcard at the end of a key of Express 5, which matches no empty text. */
const lastWildcard = /(\/?)\*([\w$\u0080-\uffff]+|"[^"/]+")\/?$/;

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
}): ((request: Request, forms: readonly string[]) => boolean) | undefined {
  const { app, report } = options;
  const router = applicationRouter(app);
  const routes = options.routes.filter(({ path }) => lastWildcard.test(path));
  if (routes.length === 0 || dialectOf(router) === "Express 4") return undefined;
  const folders = routes.map((route) => ({
    ...route,
    path: route.path.replace(lastWildcard, "") || "/",
  }));
  const find = createPathRouter({
    router,
    routes: folders,
    settings: { caseSensitive: false, strict: false },
  });
  const reported = new Set<Route>();
  return (request, forms) => {
    const { method, baseUrl, url } = request;
    const folder = find(method, forms);
    if (typeof folder !== "object") return false;
    const path = pathOf(url);
    const isTaken = pathsBelow(baseUrl, path).some((each) => isTakenEmpty(app, method, each));
    if (!isTaken) return false;
    const route = routes[folders.indexOf(folder)];
    if (route !== undefined && !reported.has(route)) {
      reported.add(route);
      report(new ConfigurationError("The paid routes", [problemOf(route, path.endsWith("/"))]));
    }
    return true;
  };
}

/** The path as the applications may see it whose mounts, and those of routers, make the base. */
function pathsBelow(base: string, path: string): string[] {
  const mounts = base.split("/");
  return mounts.map((_, at) => ["", ...mounts.slice(at + 1)].join("/") + path);
}

function isTakenEmpty(app: Application, method: string, path: string): boolean {
  return [...rootsOf(app)].some((root) => {
    return takesEmpty(applicationRouter(root), method, path) === true;
  });
}

function problemOf({ key, path }: Route, hasSlash: boolean): string {
  const wider = path.replace(lastWildcard, (_, slash: string, name: string) =>
    slash === "" || hasSlash ? `${slash}{*${name}}` : `{/*${name}}`,
  );
  return `"${key}" does not sell the folder itself, and its handler takes that, too: it is withheld. Write "${wider}" in the key, or a wildcard without braces in the handler ("${path}"), which leaves the folder alone`;
}
