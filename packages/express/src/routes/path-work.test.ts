import { type Listening, listen } from "@coinslot/devnet";
import type { Express } from "express";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type PaymentRoutes, paymentMiddleware } from "../index.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { sendTarget } from "../testing/send-target.ts";
import { openShop, option } from "../testing/shop.ts";

const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all(closing.splice(0).map((close) => close()));
});

describe.each(expressVersions)("the work for one unpaid request on $name", ({ name, express }) => {
  const inDialect = (path: string) => (name === "Express 4" ? path.replace(/\*\w+/g, "*") : path);

  /** Sells these keys, serves all other paths, and counts the tries of each key by each router. */
  async function open(keys: readonly string[], serve: (app: Express) => void = () => undefined) {
    const accepts = option();
    const routes: PaymentRoutes = Object.fromEntries(
      keys.map((key) => [`GET ${inDialect(key)}`, { accepts }]),
    );
    const shop: Listening = await openShop({
      express,
      routes,
      options: { app: express() },
      serve(app) {
        serve(app);
        app.use((_request, response) => void response.send("free"));
      },
    });
    closing.push(() => shop.close());
    const [layer] = express.Router().get("/x", () => undefined).stack;
    const layers: { match(path: string): unknown } = Object.getPrototypeOf(layer);
    const { match } = layers;
    let tries: { layer: object; path: string }[] = [];
    const routers: { handle(...args: unknown[]): unknown } = Object.getPrototypeOf(
      express.Router(),
    );
    const handled = vi.spyOn(routers, "handle");
    vi.spyOn(layers, "match").mockImplementation(function (this: object, path) {
      // The application serves no route.
      if (Reflect.get(this, "route") !== undefined) tries.push({ layer: this, path });
      return Reflect.apply(match, this, [path]);
    });
    return async (target: string) => {
      tries = [];
      handled.mockClear();
      const { status } = await sendTarget(shop, target);
      return { status, tries, calls: handled.mock.calls.length };
    };
  }

  it("is none for an absolute target with runs of slashes or segments of two dots", async () => {
    const mount = (app: Express) => void app.use("/api", (_request, _response, next) => next());
    const ask = await open(["/api/:name", "/api/:name/*rest"], mount);
    for (const path of [
      "/api/..//..//x",
      "/api//x",
      "/api/%2Fx",
      "/api/a/%2e%2e/x",
      "/api/https%3A%2F%2Fx",
    ]) {
      const { status, tries } = await ask(`http://shop${path}`);
      expect([path, status, tries.length]).toEqual([path, 400, 0]);
    }
    for (const path of ["/api/.well-known", "/api/a%2Fb", "/api/a%3Fb"]) {
      expect([path, (await ask(`http://shop${path}`)).status]).toEqual([path, 402]);
    }
  });

  it("is one try of each form of a long path", async () => {
    const ask = await open(["/files/:name/x", "/:folder/:name/:id/*rest", "/x/*rest"]);
    const { tries } = await ask(`/files/b%2fc%3f${"d".repeat(1_200)}`);
    expect(tries.length).toBeGreaterThan(0);
    const paths = new Map<object, string[]>();
    for (const { layer, path } of tries) paths.set(layer, [...(paths.get(layer) ?? []), path]);
    for (const each of paths.values()) expect(each).toEqual([...new Set(each)]);
  });

  it("leaves the results of ordinary paths in the cache", async () => {
    const ask = await open(["/files/:name"]);
    expect((await ask("/files/caf%C3%A9")).tries.length).toBeGreaterThan(0);
    for (const sign of "abcdefghij") {
      expect((await ask(`/files//${sign}%3f//b%25//c//d//e`)).tries.length).toBeGreaterThan(50);
    }
    expect((await ask("/files/caf%C3%A9")).tries).toEqual([]);
  });

  it("is bounded for all keys with several wildcards together", async () => {
    const kinds = ["blob", "tree", "raw", "edit", "log"];
    const ask = await open(kinds.map((kind) => `/r/*a/${kind}/*b/x`));
    const long = kinds
      .map((kind) => `/${kind}`)
      .join("")
      .repeat(50);
    const odd = await ask(`/r//%41//b//c//d${long}`.slice(0, 1_000));
    expect(odd.status).toBe(400);
    expect(odd.tries.length).toBeLessThan(100);
    for (const [start, length] of [
      ["/r/%41", 1_000],
      ["/r/a%2Fb", 980],
      ["/r/%41/", 900],
    ] as const) {
      const path = `${start}${long}`.slice(0, length);
      expect([path, (await ask(path)).status]).toEqual([path, 200]);
      const sold = `${path.slice(0, -2)}/x`;
      expect([sold, (await ask(sold)).status]).toEqual([sold, 402]);
    }
    expect((await ask(`/r//%41//b//c//d${long}`.slice(0, 300))).status).toBe(200);
  });

  it("refuses no ordinary path that an odd one has in its forms", async () => {
    const kinds = Array.from({ length: 40 }, (_, at) => `k${at}`);
    const ask = await open(kinds.map((kind) => `/r/*a/${kind}/*b/x`));
    const rest = "a".repeat(990);
    expect((await ask(`/r//${rest}`)).status).toBe(400);
    expect((await ask(`/r/${rest}`)).status).toBe(200);
  });

  it("has no router's call for each key with several wildcards that starts otherwise", async () => {
    const callsOf = async (keyCount: number) => {
      const keys = Array.from({ length: keyCount }, (_, at) => `/k${at}/*a/x/*b`);
      const { status, calls } = await (await open(keys))("/r//%41//b//c%3f//d");
      expect(status).toBe(200);
      vi.restoreAllMocks();
      return calls;
    };
    expect(await callsOf(50)).toBe(await callsOf(1));
  });

  it("is one sum for all searches of a request behind a mount", async () => {
    const accepts = option();
    const kinds = Array.from({ length: 30 }, (_, at) => `/m/r/*a/k${at}/*b/x`);
    const routes: PaymentRoutes = Object.fromEntries(
      [...kinds, "/*rest"].map((key) => [`GET ${inDialect(key)}`, { accepts }]),
    );
    const gate = paymentMiddleware(routes, createPaperFacilitator(), { app: express() });
    await gate.ready();
    // The last key is relative. Where it fits, the full keys are tried once more.
    const router = express.Router().use(gate);
    router.get(inDialect("/*rest"), (_request, response) => void response.send("content"));
    const shop = await listen(express().use("/m", router));
    closing.push(() => shop.close());
    const ask = async (length: number) =>
      (await sendTarget(shop, "/m/r/%41".padEnd(length, "a"))).status;
    expect([await ask(600), await ask(900)]).toEqual([402, 400]);
  });
});
