import { createRequire } from "node:module";
import { type Listening, listen } from "@coinslot/devnet";
import { ConfigurationError } from "@coinslot/protocol";
import express, { type Express, type RequestHandler } from "express";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { type PaymentRoutes, paymentMiddleware } from "../index.ts";
import { type ExpressModule, expressVersions } from "../testing/express-versions.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";

// Express 5 is installed beside the middleware here; the application runs on Express 4.
const express4: ExpressModule = createRequire(import.meta.url)("express4");

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

const content = "the content that is sold";
const accepts = option();

async function open(config: Parameters<typeof openShop>[0]): Promise<Shop> {
  const shop = await openShop(config);
  opened.push(shop);
  return shop;
}

function serveFiles(app: Express): void {
  app.get("/files/*", (_request, response) => void response.send(content));
  app.get("/free", (_request, response) => void response.send("free"));
}

async function ask(shop: Listening, path: string) {
  const response = await supertest(shop.url).get(path);
  return { status: response.status, text: response.text };
}

describe("an application on Express 4 with Express 5 beside the middleware", () => {
  it("closes a key that Express 5 reads differently, and reports it once", async () => {
    const routes: PaymentRoutes = { "GET /files/*rest": { accepts } };
    const shop = await open({ express: express4, routes, serve: serveFiles });
    for (const path of ["/files/report.pdf", "/files/a/b", "/files/the-rest", "/files/"]) {
      const { status, text } = await ask(shop, path);
      expect(status, path).toBe(503);
      expect(text).not.toContain(content);
    }
    expect(await ask(shop, "/free")).toEqual({ status: 200, text: "free" });
    expect(shop.errors).toEqual([expect.any(ConfigurationError)]);
    expect(String(shop.errors[0])).toMatch(
      /"GET \/files\/\*rest" was read by Express 5, and the application runs on Express 4.*options\.app/s,
    );
  });

  it("reports such a key at the first request, on any path", async () => {
    const routes: PaymentRoutes = { "GET /files/*rest": { accepts } };
    const shop = await open({ express: express4, routes, serve: serveFiles });
    expect(shop.errors).toEqual([]);
    await ask(shop, "/free");
    expect(shop.errors).toHaveLength(1);
  });

  it("sells the other keys, which both read alike", async () => {
    const routes: PaymentRoutes = {
      "GET /files/*rest": { accepts },
      "GET /reports/:id": { accepts },
    };
    const shop = await open({ express: express4, routes, serve: serveFiles });
    expect((await ask(shop, "/reports/7")).status).toBe(402);
  });

  it("sells a wildcard of Express 4 when the application is passed", async () => {
    const app = express4();
    const routes: PaymentRoutes = { "GET /files/*": { accepts } };
    const errors: unknown[] = [];
    const gate = paymentMiddleware(routes, createPaperFacilitator(), {
      app,
      onError: (error) => errors.push(error),
    });
    serveFiles(app.use(gate));
    await gate.ready();
    const shop = await listen(app);
    opened.push(shop);
    expect((await ask(shop, "/files/report.pdf")).status).toBe(402);
    expect(await ask(shop, "/free")).toEqual({ status: 200, text: "free" });
    expect(errors).toEqual([]);
  });

  it("refuses at start a key that the application's Express does not understand, and names the option", () => {
    const make = (key: string, app?: Express) => () =>
      Reflect.apply(paymentMiddleware, undefined, [
        { [key]: { accepts } },
        createPaperFacilitator(),
        app ? { app } : {},
      ]);
    expect(make("GET /files/*")).toThrow(/Express 5 does not understand.*options\.app/s);
    expect(make("GET /((", express4())).toThrow(/Express 4 does not understand/);
    expect(make("GET /files/*", express4())).not.toThrow();
  });

  it.each([
    ["GET /files/*rest", 'a wildcard with a name ("*rest")'],
    ["GET /files/*rest/raw", 'a wildcard with a name ("*rest")'],
    ["GET /items{/:id}", "an optional part in braces"],
    ["GET /items/:name{.:type}", 'an optional part in braces; write "/:name?" or ".:name?"'],
    ["GET /items{-:id}", "an optional part in braces"],
  ])(
    "refuses %s on Express 4, which takes it for text: its handler would be free",
    (key, words) => {
      const make = () =>
        paymentMiddleware({ [key]: { accepts } }, createPaperFacilitator(), { app: express4() });
      expect(make).toThrow(words);
    },
  );

  it("takes a quantifier of an expression, which has braces in Express 4", () => {
    const routes: PaymentRoutes = { "GET /years/:year(\\d{4})": { accepts } };
    expect(() =>
      paymentMiddleware(routes, createPaperFacilitator(), { app: express4() }),
    ).not.toThrow();
  });

  it("refuses another object in place of the application", () => {
    const make = (app: unknown) => () =>
      Reflect.apply(paymentMiddleware, undefined, [
        { "GET /a": { accepts } },
        createPaperFacilitator(),
        { app },
      ]);
    expect(make({})).toThrow(/options\.app must be an Express application/);
    expect(make(express4())).not.toThrow();
  });
});

describe.each(expressVersions)("a passed application on $name", ({ express }) => {
  it("stays configurable, and its listeners stay untouched", async () => {
    const app = express();
    const routes: PaymentRoutes = { "GET /paid": { accepts } };
    const listeners = app.listenerCount("mount");
    const gate = paymentMiddleware(routes, createPaperFacilitator(), { app });
    expect(app.listenerCount("mount")).toBe(listeners);
    app.enable("case sensitive routing");
    app.use(gate);
    app.get("/paid", (_request, response) => void response.send(content));
    app.get("/PAID", (_request, response) => void response.send("free"));
    await gate.ready();
    const shop = await listen(app);
    opened.push(shop);
    expect((await ask(shop, "/paid")).status).toBe(402);
    expect(await ask(shop, "/PAID")).toEqual({ status: 200, text: "free" });
  });
});

describe("an application with routers of both Express versions", () => {
  it("sells paths of an Express 4 router under a wildcard of Express 5, on Express 5", async () => {
    const shop = await open({
      express,
      routes: { "GET /files/*rest": { accepts } },
      serve: (app) => {
        const router = express4.Router();
        router.get("/files/*", (_request, response) => void response.send(content));
        app.use(router);
      },
    });
    expect((await ask(shop, "/files/report.pdf")).status).toBe(402);
    expect((await ask(shop, "/other")).status).toBe(404);
    expect(shop.errors).toEqual([]);
  });

  it("closes paths that a wildcard of Express 4 matches, and the same one of Express 5 does not", async () => {
    const shop = await open({
      express,
      routes: { "GET /files/*rest": { accepts } },
      serve: (app) => {
        const router = express4.Router();
        router.get("/files/*", (_request, response) => void response.send(content));
        app.use(router);
      },
    });
    for (const path of ["/files/", "/FILES/"]) expect((await ask(shop, path)).status).toBe(503);
    expect(shop.errors).toEqual([expect.any(ConfigurationError)]);
    expect(String(shop.errors[0])).toMatch(/"GET \/files\/\*rest" .*Express 4/);
  });

  it.each(["before", "after"] as const)(
    "closes paths that an Express 5 router, mounted %s the first request, matches by a key of Express 4",
    async (time) => {
      const mount = (app: Express) => {
        const router = express.Router();
        router.get("/files/*rest", (_request, response) => void response.send(content));
        app.use("/", express4.Router().use(router));
      };
      let app: Express | undefined;
      const routes: PaymentRoutes = { "GET /files/*rest.pdf": { accepts } };
      const shop = await open({
        express: express4,
        routes,
        before: (made) => {
          app = made;
        },
        options: { app: express4() },
        serve: (made) => {
          if (time === "before") mount(made);
        },
      });
      expect((await ask(shop, "/other")).status).toBe(404);
      expect(shop.errors).toEqual([]);
      if (time === "after" && app !== undefined) mount(app);
      for (const path of ["/files/report.pdf", "/files/b.pdf"]) {
        expect((await ask(shop, path)).status).toBe(503);
      }
      expect(shop.errors).toEqual([expect.any(ConfigurationError)]);
      expect(String(shop.errors[0])).toMatch(/"GET \/files\/\*rest\.pdf" .*Express 5/);
    },
  );

  const shopOf4 = (serve: (app: Express) => void, routes: PaymentRoutes) =>
    open({ express: express4, routes, options: { app: express4() }, serve });
  const filesOf5 = () =>
    express.Router().get("/files/*rest", (_request, response) => void response.send(content));

  it("closes paths that an earlier key matches in the other Express, where a later one matches in its own", async () => {
    const shop = await shopOf4((app) => app.use(filesOf5()), {
      "GET /files/*rest.pdf": { accepts },
      "GET /files/:name": { accepts },
    });
    expect((await ask(shop, "/files/report.pdf")).status).toBe(503);
    expect(String(shop.errors[0])).toMatch(/"GET \/files\/\*rest\.pdf" .*Express 5/);
  });

  it("sells no long path by a later key, where a dear one of three wildcards fits in the other Express", async () => {
    const shop = await open({
      express,
      routes: { "GET /files/*a/p/*b/q/*c": { accepts }, "GET /files/*rest": { accepts } },
      serve: (app) => {
        const send: RequestHandler = (_request, response) => void response.send(content);
        app.use(express4.Router().get("/files/*/p/*/q/*", send));
      },
    });
    expect((await ask(shop, "/files//p/x/q/y")).status).toBe(503);
    expect((await ask(shop, `/files//p/${"x".repeat(250)}/q/y`)).status).toBe(400);
    expect((await ask(shop, `/files/${"x".repeat(250)}`)).status).toBe(400);
  });

  it("sells no path by a later key, where the work on dear ones in the other Express is cut", async () => {
    const kinds = ["raw", "log", "tree"];
    const dear = kinds.map((kind) => [`GET /r/*a/${kind}/*b/v/*c`, { accepts }]);
    const shop = await open({
      express,
      routes: { ...Object.fromEntries(dear), "GET /r/*rest": { accepts } },
      serve: (app) => {
        const router = express4.Router();
        for (const kind of kinds) {
          router.get(`/r/*/${kind}/*/v/*`, (_request, response) => void response.send(content));
        }
        app.use(router);
      },
    });
    // Two forms, which both Expresses try on three keys.
    const pathOf = (length: number) => `/r/%61${"a".repeat(length)}/tree/q/v/`;
    expect((await ask(shop, pathOf(20))).status).toBe(503);
    expect((await ask(shop, pathOf(170))).status).toBe(400);
    expect((await ask(shop, `${pathOf(20)}x`)).status).toBe(402);
  });

  it("refuses a path that only the other Express decodes, without success", async () => {
    const shop = await shopOf4((app) => app.use(filesOf5()), {
      "GET /files/*rest.pdf": { accepts },
    });
    const { status, text } = await ask(shop, "/files/%zz.pdf");
    expect([status, JSON.parse(text).error]).toEqual([400, "invalid_path"]);
  });

  it("closes paths that a router of the other Express serves as a route's handler", async () => {
    const shop = await shopOf4((app) => app.get("/files/*", filesOf5()), {
      "GET /files/*rest.pdf": { accepts },
    });
    expect((await ask(shop, "/files/report.pdf")).status).toBe(503);
  });

  it("closes paths that a router of the other Express serves in an outer application", async () => {
    const errors: unknown[] = [];
    const routes: PaymentRoutes = { "GET /files/*rest.pdf": { accepts } };
    const inner = express4();
    const gate = paymentMiddleware(routes, createPaperFacilitator(), {
      app: inner,
      onError: (error) => errors.push(error),
    });
    await gate.ready();
    const shop = await listen(express4().use(inner.use(gate)).use(filesOf5()));
    opened.push(shop);
    expect((await ask(shop, "/files/report.pdf")).status).toBe(503);
    expect(errors).toEqual([expect.any(ConfigurationError)]);
  });

  it("sells relative keys before a router of the other Express", async () => {
    const gate = paymentMiddleware({ "GET /*rest": { accepts } }, createPaperFacilitator());
    await gate.ready();
    const app = express().use(
      "/m",
      express
        .Router()
        .use(gate)
        .get("/*rest", (_, to) => void to.end()),
    );
    const shop = await listen(app.use(express4.Router().get("/free", (_, to) => void to.end())));
    opened.push(shop);
    expect((await ask(shop, "/m/a")).status).toBe(402);
    expect((await ask(shop, "/free")).status).toBe(200);
  });

  it.each(expressVersions)(
    "sells plain keys of every router with $name at its root",
    async (root) => {
      for (const { express: other } of expressVersions) {
        const shop = await open({
          express: root.express,
          routes: { "GET /a/:id": { accepts }, "GET /sub/b": { accepts } },
          serve: (app) => {
            const router = other.Router();
            router.get("/a/:id", (_request, response) => void response.send(content));
            const inner = other();
            inner.get("/b", (_request, response) => void response.send(content));
            app.use(router).use("/sub", inner);
          },
        });
        for (const path of ["/a/1", "/A/1/", "//a//1", "/sub/b", "/sub/B/"]) {
          expect((await ask(shop, path)).status).toBe(402);
        }
        expect(shop.errors).toEqual([]);
      }
    },
  );
});
