import { ConfigurationError } from "@coinslot/protocol";
import type { Application } from "express";
import { applicationRouter, routersOf } from "./application-router.ts";
import { dialectOf, isReadAlike, type PathDialect, problemOfPath } from "./path-dialect.ts";
import { createPathRouter, type PathRouter } from "./path-router.ts";
import type { Route } from "./read-routes.ts";

/** Route keys in the syntax of the other Express of an application's tree. */
export interface SecondReading {
  /** Returns whether this key was checked by one Express and is matched by another, or by none. */
  isClosed(route: Route): boolean;
  /**
   * The keys as the other Express reads them, if there is one.
   *
   * @param isOutdated whether routers may have been mounted since
   */
  find(isOutdated: boolean): PathRouter | undefined;
  /** Reports, once for each key, that a request fits it only as the other Express reads it. */
  reportDifference(route: Route): void;
}

/**
 * Reads keys a second time where versions of Express differ in one tree: the one that checked the
 * keys at start, the application's, and those of routers nested in it. Paths that either reads as
 * one of a key are withheld unless the application's own reading sells them.
 *
 * @returns `undefined` when all keys are read alike by either Express
 */
export function createSecondReading(options: {
  app: Application;
  routes: readonly Route[];
  /** A router of the Express that has read the keys. */
  checkedBy: object;
  report: (fault: ConfigurationError) => void;
}): SecondReading | undefined {
  const { app, routes, checkedBy, report } = options;
  const unlike = routes.filter(({ path }) => !isReadAlike(path));
  if (unlike.length === 0) return undefined;
  const router = applicationRouter(app);
  const dialect = dialectOf(router);
  const checked = dialectOf(checkedBy);
  const closed = new Set(
    unlike.filter(({ path }) => checked !== dialect || problemOfPath(router, path) !== undefined),
  );
  if (closed.size > 0) {
    const problems = [...closed].map(({ key }) => closedKeyProblem(key, checked, dialect));
    report(new ConfigurationError("The paid routes", problems));
  }
  const other = (each: object) => dialectOf(each) !== dialect;
  const reported = new Set<Route>();
  let pathRouter: PathRouter | undefined;
  if (other(checkedBy)) {
    // The seller's handlers are of the application's Express, and its wildcards may be empty.
    pathRouter = earliest(pathRouterLike(checkedBy), pathRouterLike(router));
  } else findOtherRouter();
  return {
    isClosed: (route) => closed.has(route),
    find(isOutdated) {
      if (pathRouter === undefined && isOutdated) findOtherRouter();
      return pathRouter;
    },
    reportDifference(route) {
      if (closed.has(route) || reported.has(route)) return;
      reported.add(route);
      const theirs = dialect === "Express 4" ? "Express 5" : "Express 4";
      report(
        new ConfigurationError("The paid routes", [
          `"${route.key}" is read by ${dialect}, and a router of ${theirs} in the application reads it differently: paths that only that router matches are withheld, unless an earlier key sells them. Write the key in the syntax of ${dialect}`,
        ]),
      );
    },
  };

  function findOtherRouter(): void {
    for (const each of routersOf(app)) {
      if (!other(each)) continue;
      pathRouter = pathRouterLike(each);
      return;
    }
  }

  /** The earlier route of two readings; `malformed` where neither finds one, and one is that. */
  function earliest(one: PathRouter, two: PathRouter): PathRouter {
    return (...request) => {
      const [a, b] = [one(...request), two(...request)];
      if (typeof a !== "object") return typeof b === "object" ? b : (a ?? b);
      return typeof b === "object" && routes.indexOf(b) < routes.indexOf(a) ? b : a;
    };
  }

  function pathRouterLike(like: object): PathRouter {
    const settings = { caseSensitive: false, strict: false };
    const isOld = dialectOf(like) === "Express 4";
    const pathOf = ({ path }: Route) => (isOld ? inExpress4(path) : path);
    return createPathRouter({ router: like, routes, settings, pathOf });
  }
}

/**
 * A path of Express 5 with the wildcards of Express 4, which match an empty text, too. A seller
 * writes them so in a router of Express 4. They take all that the same text takes there.
 */
function inExpress4(path: string): string {
  return path.replace(/(?<!\\)\*[A-Za-z_]\w*/g, "*");
}

function closedKeyProblem(key: string, checked: PathDialect, dialect: PathDialect): string {
  return `"${key}" was read by ${checked}, and the application runs on ${dialect}, which reads it otherwise: the route is closed. Pass the application as options.app, and write the key as ${dialect} does`;
}
