import { effort } from "@coinslot/devnet/effort";
import type { RequestHandler } from "express";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dispatch } from "../testing/dispatch.ts";
import { type ExpressModule, expressVersions } from "../testing/express-versions.ts";
import { option } from "../testing/shop.ts";
import { createRouteMatcher } from "./match-route.ts";
import { readRoutePayment } from "./read-route-payment.ts";
import type { Route } from "./read-routes.ts";

const runs = 2_000 * effort;

/** A route's key, and a plain path of it. */
const routes = [
  { path: "/paid", example: "/paid" },
  { path: "/items/:id", example: "/items/seven" },
  { path: "/files/:name/raw", example: "/files/a.txt/raw" },
  { path: "/a-b/:from-:to", example: "/a-b/x-y" },
];
const mounts = [
  { path: "", example: "" },
  { path: "/api", example: "/api" },
  { path: "/v/:version", example: "/v/one" },
  { path: "/", example: "" },
];

const settings = fc.record({
  appCase: fc.boolean(),
  appStrict: fc.boolean(),
  routerCase: fc.boolean(),
  routerStrict: fc.boolean(),
});

/** The middleware's place: in front of the application, or in the router beside the handler. */
const place = fc.constantFrom("app", "router");
const verbs = fc.constantFrom("GET", "POST", "*", undefined);
// Lower case comes from middleware that lets a form override its method.
const methods = fc.constantFrom("GET", "HEAD", "POST", "OPTIONS", "DELETE", "get", "Head");

/** A client's changes of a path, from harmless to hostile. */
const tampering = fc.array(
  fc.tuple(
    fc.constantFrom(
      "flip case",
      "encode",
      "encode lower",
      "double slash",
      "slash",
      "dots",
      "trailing slash",
      "dot segment",
      "parent segment",
      "encoded dot",
      "encoded slash",
      "backslash",
      "matrix",
      "query",
      "fragment",
      "space",
      "brace",
      "quote",
      "extra segment",
      "nul",
      "bad escape",
      "absolute",
      "false port",
      "unicode",
    ),
    fc.nat(40),
  ),
  { maxLength: 4 },
);

function tamper(path: string, changes: readonly (readonly [string, number])[]): string {
  return changes.reduce((url, [kind, at]) => {
    const index = url.length === 0 ? 0 : at % url.length;
    const [head, char, tail] = [url.slice(0, index), url.charAt(index), url.slice(index + 1)];
    const hex = char.charCodeAt(0).toString(16).padStart(2, "0");
    switch (kind) {
      case "flip case":
        return (
          head + (char === char.toLowerCase() ? char.toUpperCase() : char.toLowerCase()) + tail
        );
      case "encode":
        return char === "" ? url : `${head}%${hex.toUpperCase()}${tail}`;
      case "encode lower":
        return char === "" ? url : `${head}%${hex}${tail}`;
      case "double slash":
        return url.replace("/", "//");
      case "slash":
        return `${head}/${char}${tail}`;
      case "dots":
        return url.replace("one", "..");
      case "trailing slash":
        return `${url}/`;
      case "dot segment":
        return `/.${url}`;
      case "parent segment":
        return `/x/..${url}`;
      case "encoded dot":
        return `/%2e%2E${url}`;
      case "encoded slash":
        return `${head}%2f${char}${tail}`;
      case "backslash":
        return url.replace("/", "/\\");
      case "matrix":
        return `${url};a=b`;
      case "query":
        return `${url}?${char}`;
      case "fragment":
        return `${url}#${char}`;
      case "space":
        return `${head} ${char}${tail}`;
      case "brace":
        return `${head}{${char}${tail}`;
      case "quote":
        return `${head}"${char}${tail}`;
      case "extra segment":
        return url.replace(/\/([^/]*)$/, "/a/$1");
      case "nul":
        return `${url}%00`;
      case "bad escape":
        return `${head}%zz${char}${tail}`;
      case "absolute":
        return url.startsWith("/") ? `http://host${url}` : url;
      case "false port":
        return url.startsWith("/") ? `http://host:b${url}` : url;
      default:
        return `${head}é${char}${tail}`;
    }
  }, path);
}

const requests = fc.record({
  route: fc.constantFrom(...routes),
  mount: fc.constantFrom(...mounts),
  settings,
  place,
  verb: verbs,
  handlerVerb: fc.constantFrom("get", "post", "all", "use"),
  method: methods,
  changes: tampering,
  // The Express version beside the gate, and that of a mounted router.
  checkedBy: fc.constantFrom(...expressVersions),
  routerOf: fc.constantFrom(...expressVersions),
});

type FuzzedRequest = typeof requests extends fc.Arbitrary<infer T> ? T : never;

/** One paid route. Its path is of the grammar of the Express under test, which may not be ours. */
function paidRoute(verb: string, path: string): Route {
  const terms = readRoutePayment({ accepts: option() }, (problem) => expect(problem).toBe(""));
  if (terms === undefined) throw new Error("The route is not sound");
  return { key: `${verb} ${path}`, verb, path, ...terms };
}

/** An application with one handler, and a matcher that observes its requests. */
function build({ name, express }: { name: string; express: ExpressModule }, fuzzed: FuzzedRequest) {
  const { route, mount, settings: set, place: where, verb = "*", handlerVerb } = fuzzed;
  const { checkedBy, routerOf } = fuzzed;
  const app = express();
  if (set.appCase) app.enable("case sensitive routing");
  if (set.appStrict) app.enable("strict routing");
  const router = routerOf.express.Router({
    caseSensitive: set.routerCase,
    strict: set.routerStrict,
    mergeParams: true,
  });
  const full = where === "router" ? route.path : mount.path.replace(/^\/$/, "") + route.path;
  // A `use` mount serves all paths below it, and is sold with a wildcard.
  const below = full + (name === "Express 4" ? "/*" : "/*rest");
  const paths = handlerVerb === "use" ? [full, below] : [full];
  const keys = paths.map((path) => paidRoute(verb, path));
  const match = createRouteMatcher(keys, {
    checkedBy: checkedBy.express.Router(),
    report: () => undefined,
  });
  const seen = { isMatched: false, isReached: false };
  const gate: RequestHandler = (request, _response, next) => {
    if (match(request) !== undefined) seen.isMatched = true;
    next();
  };
  const isMounted = mount.path !== "";
  const target = isMounted ? router : app;
  if (where === "app") app.use(gate);
  else target.use(gate);
  target[handlerVerb](route.path, () => {
    seen.isReached = true;
  });
  if (isMounted) app.use(mount.path, router);
  return { app, seen };
}

describe.each(expressVersions)("the route matcher on $name", (version) => {
  it("matches every request that Express routes to a paid handler", { timeout: 120_000 }, () => {
    let reached = 0;
    fc.assert(
      fc.property(requests, (fuzzed) => {
        const { verb = "*", method, mount, route, changes } = fuzzed;
        const { app, seen } = build(version, fuzzed);
        dispatch(app, { method, url: tamper(mount.example + route.example, changes) });
        const served = method.toUpperCase();
        const isListed = verb === "*" || verb === served || (verb === "GET" && served === "HEAD");
        if (!seen.isReached || !isListed) return;
        reached += 1;
        expect(seen.isMatched).toBe(true);
      }),
      { numRuns: runs },
    );
    // The property is meaningful only if many requests get through.
    expect(reached).toBeGreaterThan(runs / 20);
  });
});
