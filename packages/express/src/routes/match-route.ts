import type { ConfigurationError } from "@coinslot/protocol";
import type { Application, Request } from "express";
import { applicationRouter } from "./application-router.ts";
import { dearestOf } from "./dearest-key.ts";
import { createEmptyWildcards } from "./empty-wildcards.ts";
import {
  cutTargetOf,
  expressForms,
  hasDotSegments,
  isPlainTarget,
  pathOf,
  servedReadings,
  targetsOf,
  truncatedReadings,
} from "./path-forms.ts";
import {
  createPathRouter,
  createPathSearch,
  isSpent,
  type PathRouter,
  type PathSearch,
} from "./path-router.ts";
import type { Route } from "./read-routes.ts";
import { hasOnlyRoutersLike, type RoutingSettings } from "./routing-settings.ts";
import { createSecondReading, type SecondReading } from "./second-reading.ts";
import { isTakenByRoute, textsBesideGate } from "./takers.ts";

/**
 * The paid route of a request. `malformed`: its path has no one meaning, or cannot be decoded for a
 * route that fits. `closed`: two Expresses of the tree read it differently, or the handler alone
 * takes it.
 */
export type RouteMatcher = (
  request: Request,
  /** The key that it is sold by already. Beside it, only keys relative to a mount count. */
  sold?: Route,
) => Route | "malformed" | "closed" | undefined;

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
  return (request, sold) => {
    const { app } = request;
    const targets = targetsOf(request);
    if (!targets.every(isPlainTarget)) return "malformed";
    let found = routers.get(app);
    if (found === undefined) {
      const secondReading = createSecondReading({ app, routes, ...reading });
      const findFolderFault = createEmptyWildcards({ app, routes, ...reading });
      found = { ...pathRoutersOf(app, routes), secondReading, findFolderFault };
      routers.set(app, found);
    }
    const tree = treeOf(request, found, reading.gate?.());
    const readings = (sold === undefined ? targets : [request.url]).map(readingsOf);
    const route = findRoute(request, tree, { readings, sold });
    if (route !== undefined) return route;
    const fault = found.findFolderFault?.(request, readings.flatMap(allForms), tree.searches.all);
    if (fault !== undefined) return fault;
    const cut = targets.flatMap((target) => cutTargetOf(target) ?? []);
    const cutForms = cut.map(readingsOf).flatMap(allForms);
    const isMisread = cut.length > 0 && findInBoth(request, tree, cutForms) !== undefined;
    return isMisread ? "malformed" : undefined;
  };

  /**
   * The key that a path fits as Express reads it. Servers of files, proxies and handlers that fetch
   * may read another path. Then the dearest key sells it, but for escaped slashes that the key's
   * own route takes. Keys whose prices cannot be compared have no one price.
   */
  function findRoute(
    request: Request,
    tree: Tree,
    { readings, sold }: { readings: readonly Readings[]; sold: Route | undefined },
  ): ReturnType<RouteMatcher> {
    const own = dearestOf([sold, ...readings.flatMap(ownKeys)]);
    if (own === "malformed" || own === "closed") return own;
    const dearest = dearestOf([own, ...keysOf(({ served }) => served())]);
    const hasDots = () => readings.some(({ target }) => hasDotSegments(target));
    if (own === undefined || own === dearest || hasDots()) return dearest;
    const truncated = dearestOf([own, ...keysOf(({ target }) => truncatedReadings(target))]);
    return truncated === own && tree.isTakenByRoute(own) ? own : dearest;

    /** A wildcard takes a run of slashes that a mount cuts: each form may be another key's. */
    function ownKeys({ target, forms }: Readings, at: number): ReturnType<RouteMatcher>[] {
      const groups = pathOf(target).includes("//") ? forms.map((form) => [form]) : [forms];
      return groups.map((each) => find(each, at));
    }

    function keysOf(formsOf: (each: Readings) => string[][]): ReturnType<RouteMatcher>[] {
      return readings.flatMap((each, at) => formsOf(each).map((forms) => find(forms, at)));
    }

    /** Targets but the first are whole paths, which relative keys do not name. */
    function find(forms: readonly string[], at: number): ReturnType<RouteMatcher> {
      const { relative, full } = tree.searches;
      if (sold !== undefined) return findInBoth(request, tree, forms, relative);
      const found = findInBoth(request, tree, forms);
      if (at === 0 || typeof found !== "object" || !tree.isRelative(found)) return found;
      return findInBoth(request, tree, forms, full);
    }
  }

  function findInBoth(
    request: Request,
    tree: Tree,
    forms: readonly string[],
    search = tree.searches.all,
  ): ReturnType<RouteMatcher> {
    const own = findOwn(request, tree, { forms, search });
    const { secondReading } = tree.found;
    if (secondReading === undefined || own === "malformed") return own;
    if (own !== undefined && secondReading.isClosed(own)) return "closed";
    const other = own === undefined ? tree.findOther() : secondReading.find(false);
    const theirs = other?.(request.method, forms, search);
    if (theirs === undefined) return own;
    // An earlier key may fit that was not tried.
    if (isSpent(search)) return "malformed";
    if (theirs === "malformed") return own ?? "malformed";
    if (own !== undefined && routes.indexOf(own) <= routes.indexOf(theirs)) return own;
    secondReading.reportDifference(theirs);
    return "closed";
  }
}

function findOwn(
  { method, url, originalUrl }: Request,
  { found: { loose, exact }, isAlike }: Tree,
  { forms, search }: { forms: readonly string[]; search: PathSearch },
): Route | "malformed" | undefined {
  const found = loose(method, forms, search);
  if (found === undefined || exact === undefined) return found;
  // The code that has cut a prefix, or rewritten the path, need not distinguish as much.
  if (url !== originalUrl) return found;
  const exactly = exact.find(method, forms, search);
  return exactly === found || isAlike() ? exactly : found;
}

/** A target in its spellings, and in its further readings with theirs, made where it fits. */
interface Readings {
  target: string;
  forms: string[];
  served(): string[][];
}

function readingsOf(target: string): Readings {
  return {
    target,
    forms: expressForms(target),
    served: once(() => servedReadings(target)),
  };
}

function allForms({ forms, served }: Readings): string[] {
  return [...forms, ...served().flat()];
}

/** The tree of routers as a request finds it. It is walked at most once for each question. */
interface Tree {
  found: ApplicationRouters;
  /** Returns whether all routers distinguish as the application does. */
  isAlike(): boolean;
  /** The keys as another Express reads them, which may have been mounted since. */
  findOther(): PathRouter | undefined;
  /** Returns whether the route of this key takes the path as Express reads it. */
  isTakenByRoute(key: Route): boolean;
  /** Returns whether this key is relative to the gate's mount, as routes beside the gate are. */
  isRelative(key: Route): boolean;
  /** The searches of the request: among all keys, and among those that are relative or are not. */
  searches: { all: PathSearch; relative: PathSearch; full: PathSearch };
}

function treeOf(request: Request, found: ApplicationRouters, gate: object | undefined): Tree {
  const { app, method, baseUrl, url } = request;
  const { exact, secondReading } = found;
  const gated = { method, baseUrl, url, gate };
  const base = `${baseUrl}/`.toLowerCase();
  const work = { steps: 0 };
  const texts = once(() => textsBesideGate(app, gated));
  // A key that begins with the mount counts as a full one, too.
  const isRelative = ({ path }: Route) =>
    baseUrl !== "" && !path.toLowerCase().startsWith(base) && texts().has(path);
  return {
    found,
    isAlike: once(() => exact !== undefined && hasOnlyRoutersLike(app, exact.settings, gate)),
    findOther: once(() => secondReading?.find(true)),
    isTakenByRoute: ({ path }) => isTakenByRoute(app, gated, path),
    isRelative,
    searches: {
      all: createPathSearch(undefined, work),
      relative: createPathSearch(isRelative, work),
      full: createPathSearch((route) => !isRelative(route), work),
    },
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
  findFolderFault: ReturnType<typeof createEmptyWildcards>;
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
