import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { expressVersions } from "../testing/express-versions.ts";
import { option } from "../testing/shop.ts";
import { emptyRouterLike } from "./application-router.ts";
import { problemOfPath } from "./path-dialect.ts";
import { normalKeyPath } from "./path-forms.ts";
import { createPathIndex } from "./path-index.ts";
import { createPathRouter } from "./path-router.ts";
import { readRoutePayment } from "./read-route-payment.ts";
import { readRoutes } from "./read-routes.ts";

/** Segments of keys in the syntax of either Express, or of none. */
const keySegment = fc.constantFrom(
  "a",
  "A",
  "b",
  "ab",
  "a.b",
  "a-b",
  "k",
  "é",
  "ſ",
  "ς",
  "a b",
  "%61",
  "%C3%A9",
  ":x",
  ":y",
  ":x-:y",
  ":x.b",
  ":x?",
  ":x*",
  ":x(a|b)",
  "*",
  "*rest",
  "{*rest}",
  "a*",
  "?",
  "+",
  "a?",
  "a+b",
  "(a)?",
  "(a|b)",
  "a|b",
  "[ab]",
  "a{/b}",
  "{a}",
  "{:x}",
  "a\\.b",
  "\\(a\\)",
  "$",
  "",
);
const key = fc
  .array(keySegment, { minLength: 1, maxLength: 4 })
  .map((segments) => `/${segments.join("/")}`);
const keys = fc.array(fc.oneof(key, fc.constantFrom("/", "*", "*rest", "/*", "/a/")), {
  minLength: 1,
  maxLength: 12,
});

const pathSegment = fc.constantFrom(
  ...[
    "a",
    "A",
    "b",
    "B",
    "ab",
    "AB",
    "a.b",
    "a-b",
    "k",
    "K",
    "\u212a",
    "é",
    "É",
    "ſ",
    "s",
    "ß",
    "Σ",
    "σ",
  ],
  ...["a b", "a%20b", "%61", "%C3%A9", "%c3%a9", "%zz", "%", "a%2fb", "(a)", "$", "x-y", "", ".."],
);
const target = fc
  .tuple(
    fc.constantFrom("/", "//", "", "http://host/", "HTTP://host:80/", "*"),
    fc.array(pathSegment, { maxLength: 5 }),
    fc.constantFrom("", "/", "//", "?q", "/?q=/a", "#f", ";m"),
  )
  .map(([start, segments, end]) => start + segments.join("/") + end);

const settings = fc.record({ caseSensitive: fc.boolean(), strict: fc.boolean() });

describe.each(expressVersions)("with $name, the path router", ({ express }) => {
  it("finds the same route as one router with every route", { timeout: 120_000 }, () => {
    const terms = readRoutePayment({ accepts: option() }, (problem) => expect(problem).toBe(""));
    if (terms === undefined) throw new Error("The route is not sound");
    const found = { route: 0, malformed: 0 };
    fc.assert(
      fc.property(keys, fc.array(target, { minLength: 1, maxLength: 8 }), settings, (...run) => {
        const [paths, targets, set] = run;
        const routes = paths.map((path) => ({ key: path, verb: "*", path, ...terms }));
        const router = express.Router();
        const find = createPathRouter({ router, routes, settings: set });
        for (const url of targets) {
          const expected = findAmongAll(router, { paths, url, settings: set });
          expect(find("GET", [url]), `${url} of ${paths.join(" ")}`).toBe(
            typeof expected === "number" ? routes[expected] : expected,
          );
          if (typeof expected === "number") found.route += 1;
          if (expected === "malformed") found.malformed += 1;
        }
      }),
      { numRuns: 5_000 },
    );
    // The property is meaningful only if many targets match.
    expect(found.route).toBeGreaterThan(2_000);
    expect(found.malformed).toBeGreaterThan(20);
  });
});

/** The answer of a router that tries every path, without an index. */
function findAmongAll(
  like: object,
  {
    paths,
    url,
    settings: set,
  }: {
    paths: string[];
    url: string;
    settings: typeof settings extends fc.Arbitrary<infer T> ? T : never;
  },
): number | "malformed" | undefined {
  const router = emptyRouterLike(like, set);
  let found: number | "malformed" | undefined;
  paths.forEach((path, number) => {
    for (const pattern of new Set([path, normalKeyPath(path)])) {
      if (problemOfPath(router, pattern) !== undefined) continue;
      router.all(pattern, () => {
        found = number;
      });
    }
  });
  if (router.stack.length === 0) return undefined;
  router.handle({ method: "GET", url }, {}, (error) => {
    if (error) found = "malformed";
  });
  return found;
}

describe("among 10,000 routes", () => {
  const paths = Array.from({ length: 10_000 }, (_, number) => `/api/v1/item-${number}/:id`);

  it("a request is compared with those of its own segments only", () => {
    const index = createPathIndex<string>();
    for (const path of paths) index.add(path, path);
    index.add("/:any/v1/item-7/:id", "another");
    expect(index.find("/api/v1/absent/1")).toEqual([]);
    expect(index.find("/API/v1/Item-7/1")).toEqual([paths[7], "another"]);
  });

  it.each(["*", "*rest", "{*rest}"])("one that ends with %s is compared in its folder", (end) => {
    const index = createPathIndex<string>();
    index.add(`/files/${end}`, "files");
    expect(index.find("/absent/1")).toEqual([]);
    expect(["/files", "/files/", "/files/a/b"].map(index.find)).toEqual([
      ["files"],
      ["files"],
      ["files"],
    ]);
  });

  it("reading them compiles no path for each pair, nor for each key", () => {
    const [newest] = expressVersions.slice(-1);
    if (newest === undefined) throw new Error("No Express");
    let compiled = 0;
    const prototype: object = Object.getPrototypeOf(newest.express.Router());
    const counting: object = Object.create(prototype, {
      all: {
        value(this: object, ...path: unknown[]) {
          compiled += 1;
          return Reflect.apply(Reflect.get(prototype, "all"), this, path);
        },
      },
    });
    const accepts = [option()];
    const routes = Object.fromEntries(paths.map((path) => [`GET ${path}`, { accepts }]));
    const read = readRoutes(routes, Object.create(counting), (problem) => {
      throw new Error(problem);
    });
    expect(read).toHaveLength(paths.length);
    expect(compiled).toBeLessThan(10);
  });
});
