import { posix } from "node:path";
import { effort } from "@coinslot/devnet/effort";
import type { Request, RequestHandler } from "express";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dispatch } from "../testing/dispatch.ts";
import { type ExpressModule, expressVersions } from "../testing/express-versions.ts";
import { option } from "../testing/shop.ts";
import { createRouteMatcher } from "./match-route.ts";
import { createPathRouter } from "./path-router.ts";
import { readRoutePayment } from "./read-route-payment.ts";
import type { Route } from "./read-routes.ts";

const runs = 2_000 * effort;

const keys = fc.shuffledSubarray(
  [
    ...["/:x", "/a", "/:x/:y", "/a/:y", "/:x/b", "/a/b"],
    ...["/:x/:y/:z", "/a/:y/b", "/:x/a/:z", "/a/b/:z"],
    ...["/a/*rest", "/:x/b/*rest", "/é/:y"],
  ],
  { minLength: 3, maxLength: 4 },
);
const parts = fc.constantFrom(
  ...["a", "b", "c", "%61", "B"],
  ...["/", "/", "/", "//", "%2f", "%2F", "%5C", "\\"],
  ...[".", "..", "/.", "/..", "%2e", "%252e", "%2e%2e/"],
  ...["%3F", "%23", "%20", "%09", "%25"],
  ...["%ff", "%C3%A9", "\u00c3\u00a9"],
);
const targets = fc.array(parts, { minLength: 2, maxLength: 7 }).map((each) => `/${each.join("")}`);

const ofFolder = "a static server of a folder";

/**
 * Handlers of everything below the mount, or of its folder `/a`. Each gives the path of the content
 * that it would ask for.
 */
const servers: Record<string, (request: Request) => string> = {
  "a static server": ({ path }) => fileOf(path),
  [ofFolder]: ({ path }) => `/a${fileOf(path)}`,
  // The keys are read in any spelling of a plain sign.
  "a proxy that normalises": ({ url }) =>
    new URL(`http://host${url}`).pathname.replaceAll("%61", "a"),
  "a handler that fetches a decoded path": ({ path }) =>
    new URL(`http://host${decodeURIComponent(path)}`).pathname,
};

function fileOf(path: string): string {
  return encodeURI(posix.normalize(decodeURIComponent(path))).replace(/[?#]/g, encodeURIComponent);
}

const scenes = fc.record({
  paths: keys,
  target: targets,
  // Of the key with the same place.
  prices: fc.shuffledSubarray([1, 2, 3, 4], { minLength: 4 }),
  mount: fc.constantFrom("", "/m", "/a"),
  server: fc.option(fc.constantFrom(...Object.keys(servers))),
});

type Scene = typeof scenes extends fc.Arbitrary<infer T> ? T : never;

function routeOf(path: string, price: number): Route {
  const accepts = option({ price: `$${price}` });
  const terms = readRoutePayment({ accepts }, (problem) => expect(problem).toBe(""));
  if (terms === undefined) throw new Error("The route is not sound");
  return { key: `GET ${path}`, verb: "GET", path, ...terms };
}

/** A target that no route's handler reads in another way. Behind a run of slashes may be a host. */
const parameters = /^(?!.*(?:\/|%2f){2})(?:[\w/]|%61|%2f)*$/i;

/** The path of a parameter's handler, with its parameters as parts of the path, or its wildcard. */
function spell(path: string, params: Record<string, unknown>): string {
  return path
    .replace(/:(\w)/g, (_, name: string) => encodeURIComponent(String(params[name])))
    .replace(/\*.*/, () => {
      const rest = [params.rest ?? params[0]].flat().join("/");
      return encodeURIComponent(rest).replaceAll("%2F", "/");
    });
}

/** Sends a request; returns the result of the matcher, and the key of the served content. */
function send(express: ExpressModule, { paths, prices, mount, target, server }: Scene) {
  const routes = paths.map((path, at) => routeOf(path, prices[at] ?? 1));
  const settings = { caseSensitive: false, strict: false };
  const find = createPathRouter({ router: express.Router(), routes, settings });
  const match = createRouteMatcher(routes, {
    checkedBy: express.Router(),
    report: () => undefined,
    gate: () => gate,
  });
  const seen: { matched?: ReturnType<typeof match>; served?: ReturnType<typeof find> } = {};
  const gate: RequestHandler = (request, _response, next) => {
    seen.matched = match(request);
    next();
  };
  const router = express.Router().use(gate);
  const serve = server === null ? undefined : servers[server];
  if (serve !== undefined) {
    router.use(server === ofFolder ? "/a" : "/", (request) => {
      seen.served = find("GET", [serve(request)]);
    });
  }
  if (serve === undefined || server === ofFolder) {
    for (const path of paths) {
      router.get(path, ({ params }) => {
        seen.served = find("GET", [spell(path, params)]);
      });
    }
  }
  dispatch(express().use(mount, router), { method: "GET", url: mount + target });
  return seen;
}

/** Scenes that were sold below their price once. */
const known: Scene[] = [
  {
    paths: ["/:x/:y", "/a/*rest", "/a/:y"],
    target: "/a//a",
    prices: [2, 4, 3, 1],
    mount: "",
    server: null,
  },
  {
    paths: ["/:x/b/*rest", "/:x/:y", "/a"],
    target: "/aa/b/.",
    prices: [3, 4, 1, 2],
    mount: "",
    server: "a static server",
  },
  {
    paths: ["/a/:y/b", "/:x/:y/:z", "/a/*rest"],
    target: "//a",
    prices: [4, 1, 3, 2],
    mount: "",
    server: ofFolder,
  },
];

describe.each(expressVersions)("the price of a path on $name", ({ name, express }) => {
  /** Keys in the syntax of this Express. */
  const inItsSyntax = (scene: Scene): Scene =>
    name === "Express 5"
      ? scene
      : { ...scene, paths: scene.paths.map((path) => path.replace("*rest", "*")) };

  it("is never below that of the content that is served", { timeout: 120_000 }, () => {
    let sold = 0;
    fc.assert(
      fc.property(scenes.map(inItsSyntax), (scene) => {
        const { matched, served } = send(express, scene);
        if (typeof served !== "object") return;
        const priceOf = ({ path }: Route) => scene.prices[scene.paths.indexOf(path)] ?? 0;
        expect(matched).toBeDefined();
        if (typeof matched !== "object") return;
        sold += 1;
        expect(priceOf(matched)).toBeGreaterThanOrEqual(priceOf(served));
        if (scene.server !== null || !parameters.test(scene.target)) return;
        // A wildcard's handler may serve files, and its key fits other spellings of its folder.
        if (served.path.includes("*") || matched.path.includes("*")) return;
        // Keys that begin with the mount may be full ones, too.
        if (scene.mount !== "/a") expect(matched).toBe(served);
      }),
      { numRuns: runs, examples: known.map((scene) => [inItsSyntax(scene)]) },
    );
    // The property is meaningful only if many requests are sold.
    expect(sold).toBeGreaterThan(runs / 20);
  });
});
