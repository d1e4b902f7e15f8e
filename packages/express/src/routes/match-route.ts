import type { ConfigurationError } from "@coinslot/protocol";
import type { Application, Request } from "express";
import { applicationRouter } from "./application-router.ts";
import { createEmptyWildcards } from "./empty-wildcards.ts";
import {
  climbs,
  cutTargetOf,
  depthOf,
  fetchedForms,
  isPlainTarget,
  pathForms,
  targetsOf,
} from "./path-forms.ts";
import { createPathRouter, type PathRouter } from "./path-router.ts";
import type { Route } from "./read-routes.ts";
import { hasOnlyRoutersLike, type RoutingSettings } from "./routing-settings.ts";
import { createSecondReading, type SecondReading } from "./second-reading.ts";

/**
 * The paid route of a request. `malformed`: its path has no one meaning, or cannot be decoded for a
 * route that fits. `closed`: two Expresses of the tree read it differently, or the handler alone
 * takes it.
 */
export type RouteMatcher = (request: Request) => Route | "malformed" | "closed" | undefined;

/**
 * Finds the paid route of a request with the router of the application that serves it.
 *
 * It fails closed. Paths are matched as sent, and relative to the mount. They are also matched with
 * single slashes, and as decoded and normalised by handlers. Letter case and trailing slashes do
 * not matter, unless the application and every router in it say that they do. The first key that
 * fits any of these counts. Where the tree holds two Expresses, paths that they read differently
 * are closed.
 */
export function createRouteMatcher(
  routes: readonly Route[],
  reading: {
    /** A router of the Express that has read the keys. */
    checkedBy: object;
    /** Called with differences between the Expresses of an application's tree, once for each. */
    report: (fault: ConfigurationError) => void;
    /** The middleware that matches, as it stands in the application. */
    gate?: () => object;
  },
): RouteMatcher {
  const routers = new WeakMap<Application, ApplicationRouters>();
  return (request) => {
    const { app } = request;
    const targets = targetsOf(request);
    if (!targets.every(isPlainTarget)) return "malformed";
    let found = routers.get(app);
    if (found === undefined) {
      const secondReading = createSecondReading({ app, routes, ...reading });
      const isEmptyWildcard = createEmptyWildcards({ app, routes, ...reading });
      found = { ...pathRoutersOf(app, routes), secondReading, isEmptyWildcard };
      routers.set(app, found);
    }
    const forms = pathForms(targets);
    const tree = treeOf(app, found, reading.gate?.());
    const own = findInBoth(request, tree, forms);
    if (own === "malformed" || own === "closed") return own;
    const route = findFetched(request, tree, { own, targets, forms });
    if (route !== undefined) return route;
    if (found.isEmptyWildcard?.(request, forms) === true) return "closed";
    const cut = targets.flatMap((target) => cutTargetOf(target) ?? []);
    const isMisread = cut.length > 0 && findInBoth(request, tree, pathForms(cut)) !== undefined;
    return isMisread ? "malformed" : undefined;
  };

  /**
   * The one route as which a handler's `fetch` reads a path, too. Two have no one price. Without
   * dot segments Express's own reading has it. But a handler may fetch what an earlier key sells,
   * by the text of a parameter. Such paths are as deep.
   */
  function findFetched(
    request: Request,
    tree: Tree,
    read: { own: Route | undefined; targets: readonly string[]; forms: readonly string[] },
  ): ReturnType<RouteMatcher> {
    const { own, targets, forms } = read;
    const others = fetchedForms(targets).filter((form) => !forms.includes(form));
    if (others.length === 0) return own;
    const find = (form: string) => findInBoth(request, tree, [form]);
    if (own !== undefined && !targets.some(climbs)) {
      const depths = new Set(forms.map(depthOf));
      const isEarlier = (route: ReturnType<RouteMatcher>) =>
        typeof route === "object" && routes.indexOf(route) < routes.indexOf(own);
      const alike = others.filter((form) => depths.has(depthOf(form)));
      return alike.some((form) => isEarlier(find(form))) ? "malformed" : own;
    }
    const fetched = new Set(others.map(find));
    fetched.delete(undefined);
    if (own !== undefined) {
      // Escapes that only a second decoding has made reach no handler.
      fetched.delete("malformed");
      fetched.add(own);
    }
    const [route, another] = fetched;
    return another === undefined ? route : "malformed";
  }

  function findInBoth(
    request: Request,
    tree: Tree,
    forms: readonly string[],
  ): ReturnType<RouteMatcher> {
    const own = findOwn(request, tree, forms);
    const { secondReading } = tree.found;
    if (secondReading === undefined || own === "malformed") return own;
    if (own !== undefined && secondReading.isClosed(own)) return "closed";
    const other = own === undefined ? tree.findOther() : secondReading.find(false);
    const theirs = other?.(request.method, forms);
    if (theirs === undefined) return own;
    if (theirs === "malformed") return own ?? "malformed";
    if (own !== undefined && routes.indexOf(own) <= routes.indexOf(theirs)) return own;
    secondReading.reportDifference(theirs);
    return "closed";
  }
}

function findOwn(
  { method, url, originalUrl }: Request,
  { found: { loose, exact }, isAlike }: Tree,
  forms: readonly string[],
): Route | "malformed" | undefined {
  const found = loose(method, forms);
  if (found === undefined || exact === undefined) return found;
  // The code that has cut a prefix, or rewritten the path, need not distinguish as much.
  if (url !== originalUrl) return found;
  const exactly = exact.find(method, forms);
  return exactly === found || isAlike() ? exactly : found;
}

/** The tree of routers as a request finds it. It is walked at most once for each question. */
interface Tree {
  found: ApplicationRouters;
  /** Returns whether all routers distinguish as the application does. */
  isAlike(): boolean;
  /** The keys as another Express reads them, which may have been mounted since. */
  findOther(): PathRouter | undefined;
}

function treeOf(app: Application, found: ApplicationRouters, gate: object | undefined): Tree {
  const { exact, secondReading } = found;
  return {
    found,
    isAlike: once(() => exact !== undefined && hasOnlyRoutersLike(app, exact.settings, gate)),
    findOther: once(() => secondReading?.find(true)),
  };
}

/** A function that keeps its first result. */
function once<Result>(read: () => Result): () => Result {
  let kept: { result: Result } | undefined;
  return () => {
    kept ??= { result: read() };
    return kept.result;
  };
}

interface ApplicationRouters {
  loose: PathRouter;
  /** Where the application distinguishes paths that others do not. */
  exact: { find: PathRouter; settings: RoutingSettings } | undefined;
  /** Where two Expresses may read the keys differently. */
  secondReading: SecondReading | undefined;
  /** Where a handler may take the folder of a key, which the key does not sell. */
  isEmptyWildcard: ReturnType<typeof createEmptyWildcards>;
}

function pathRoutersOf(
  app: Application,
  routes: readonly Route[],
): Pick<ApplicationRouters, "loose" | "exact"> {
  const router = applicationRouter(app);
  const settings = {
    caseSensitive: app.enabled("case sensitive routing"),
    strict: app.enabled("strict routing"),
  };
  const loose = { caseSensitive: false, strict: false };
  return {
    loose: createPathRouter({ router, routes, settings: loose }),
    exact:
      settings.caseSensitive || settings.strict
        ? { find: createPathRouter({ router, routes, settings }), settings }
        : undefined,
  };
}
