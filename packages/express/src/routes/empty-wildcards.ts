import { ConfigurationError } from "@coinslot/protocol";
import type { Application, Request } from "express";
import { applicationRouter, rootsOf } from "./application-router.ts";
import { dialectOf, type PathDialect } from "./path-dialect.ts";
import { pathOf, withSingleSlashes } from "./path-forms.ts";
import { createPathRouter, type PathSearch } from "./path-router.ts";
import type { Route } from "./read-routes.ts";
import { pathsSeen } from "./takers.ts";
import { takesEmpty } from "./takes-empty.ts";

const name = '(?:[\\w$\\u0080-\\uffff]+|"[^"/]+")';
/** A wildcard of Express 5 that ends a key, plain or in braces, with the slash before it. */
const lastWildcard = new RegExp(`(/?)(\\*${name}|\\{\\*${name}\\})/?$`);
/**
 * The end of a key that leaves a folder: a wildcard, or an optional part. No key takes that folder
 * without the slash before it. A plain wildcard of Express 5 matches no empty text.
 */
const openEnd: Record<PathDialect, RegExp> = {
  "Express 4": /\/(?::\w+)?(?:\*|\(\.?\*\))$/,
  "Express 5": new RegExp(`/?(?:\\*${name}|\\{[^{}]*\\})/?$`),
};

/** `malformed`: the path cannot be decoded, and the folder of a key fits it. */
type FolderFault = "closed" | "malformed";

type FindFolderFault = (
  request: Request,
  forms: readonly string[],
  search: PathSearch,
) => FolderFault | undefined;

/**
 * Finds requests for the folder of a key (`/files/` of `/files/*rest`) that the handler of the key
 * takes: its wildcard may be empty (`/files/{*rest}`). NestJS 11 and newer make that of `files/*`.
 * So do requests for `/files`, which a router mounted there reads as `/`.
 *
 * @param options.report called once for each key of such a request
 * @param options.gate the middleware, as it stands in the application
 * @returns the fault of a request that fits no key, and is one of these; `undefined` where no key
 * can have one
 */
export function createEmptyWildcards(options: {
  app: Application;
  routes: readonly Route[];
  report: (fault: ConfigurationError) => void;
  gate?: () => object;
}): FindFolderFault | undefined {
  const { app, report } = options;
  const router = applicationRouter(app);
  const dialect = dialectOf(router);
  const folders = options.routes.flatMap((route) =>
    foldersOf(route.path, dialect).map((path) => ({ ...route, path, of: route })),
  );
  if (folders.length === 0) return undefined;
  const settings = { caseSensitive: false, strict: false };
  const find = createPathRouter({ router, routes: folders, settings });
  const findSold = createPathRouter({ router, routes: options.routes, settings });
  const reported = new Set<Route>();
  return (request, forms, search) => {
    const { method, baseUrl, url, originalUrl } = request;
    const found = find(method, forms, search);
    if (found === "malformed") return found;
    const folder = folders.find((each) => each === found);
    if (folder === undefined) return undefined;
    const path = pathOf(url);
    const below = forms.map((form) => `${withoutEndSlashes(pathOf(form))}/x`);
    const isSoldBelow = findSold(method, below, search) !== undefined;
    const [sent, read] = [pathOf(originalUrl), baseUrl + path];
    // A mount of "" has cut a slash: the path that routers saw is not known.
    const isCut = sent !== read && withSingleSlashes(sent) === withSingleSlashes(read);
    const isSeenTaken = (root: Application): boolean => {
      const router = applicationRouter(root);
      const seen = pathsSeen(router, { method, baseUrl, url, gate: options.gate?.() });
      if (seen === undefined) return true;
      // A parent sees the mount of its application, too.
      const mount = app.path().slice(root.path().length).toLowerCase();
      const below = seen.filter((each) => each.toLowerCase().startsWith(mount));
      return (below.length > 0 ? below : seen).some(
        (each) => takesEmpty(router, { method, isSoldBelow }, each) === true,
      );
    };
    const isTaken = isCut || [...rootsOf(app)].some(isSeenTaken);
    if (!isTaken) return undefined;
    const route = folder.of;
    if (!reported.has(route)) {
      reported.add(route);
      const isPlain = dialect === "Express 5" && lastWildcard.test(route.path);
      const remedy = isPlain ? widen(route, path.endsWith("/")) : `Add a key of "${folder.path}"`;
      report(new ConfigurationError("The paid routes", [problemOf(route, remedy)]));
    }
    return "closed";
  };
}

/** An expression for the slashes would take quadratic time in a run before other text. */
function withoutEndSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === "/") end -= 1;
  return path.slice(0, end);
}

function problemOf({ key }: Route, remedy: string): string {
  return `"${key}" does not sell the folder itself, and its handler takes that, too: it is withheld. ${remedy}`;
}

/** The folders that a key leaves without its last open end, and without each one before that. */
function foldersOf(path: string, dialect: PathDialect): string[] {
  const folder = path.replace(openEnd[dialect], "") || "/";
  return folder === path ? [] : [folder, ...foldersOf(folder, dialect)];
}

function widen({ path }: Route, hasSlash: boolean): string {
  const wider = path.replace(lastWildcard, (_, slash: string, wildcard: string) => {
    const plain = wildcard.replace(/[{}]/g, "");
    return slash === "" || hasSlash ? `${slash}{${plain}}` : `{/${plain}}`;
  });
  const narrow = path.replace(/\{(\*[^{}]+)\}\/?$/, "$1");
  return `Write "${wider}" in the key, or a wildcard without braces in the handler ("${narrow}"), which leaves the folder alone`;
}
