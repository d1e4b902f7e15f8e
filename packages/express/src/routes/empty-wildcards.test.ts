import { type Listening, listen } from "@coinslot/devnet";
import { ConfigurationError } from "@coinslot/protocol";
import express, { type Express, type RequestHandler } from "express";
import { afterEach, describe, expect, it } from "vitest";
import { type PaymentRoutes, paymentMiddleware } from "../index.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { sendTarget } from "../testing/send-target.ts";
import { openShop, option } from "../testing/shop.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

const content = "the content that is sold";
const express4 = expressVersions[0]?.express ?? express;

async function open(
  serve: (app: Express) => void,
  routes: PaymentRoutes = { "GET /files/*rest": { accepts: option() } },
) {
  const shop = await openShop({ express, routes, serve });
  opened.push(shop);
  return shop;
}

/** An application whose gate stands where `build` puts it. */
async function openTree(
  version: typeof express,
  paths: readonly string[],
  build: (app: Express, gate: RequestHandler) => void,
) {
  const errors: unknown[] = [];
  const app = version();
  const gate = paymentMiddleware(
    Object.fromEntries(paths.map((path) => [`GET ${path}`, { accepts: option() }])),
    createPaperFacilitator(),
    { app, onError: (error) => errors.push(error) },
  );
  build(app, gate);
  await gate.ready();
  const listening = await listen(app);
  opened.push(listening);
  return { ...listening, errors };
}

/** The handler of a key, as NestJS registers `@Get("files/*")` from version 11 on. */
function serveFiles(app: Express): void {
  app.get("/files/{*path}", (_request, response) => void response.send(content));
}

describe("a handler on Express 5 whose wildcard may be empty, and a key whose wildcard may not", () => {
  it.each(["/files/", "/FILES/", "/files/?a=b", "http://shop/files/"])(
    "closes %s, which only the handler takes",
    async (target) => {
      const shop = await open(serveFiles);
      for (const method of ["GET", "HEAD"]) {
        const { status, answer } = await sendTarget(shop, target, { method });
        expect(status).toBe(503);
        expect(answer).not.toContain(content);
      }
      expect(shop.errors).toEqual([expect.any(ConfigurationError)]);
      expect(String(shop.errors[0])).toMatch(
        /"GET \/files\/\*rest" .*"\/files\/\{\*rest\}" in the key/,
      );
    },
  );

  it("sells the paths that both take, and those of a key whose wildcard may be empty", async () => {
    const shop = await open(serveFiles);
    expect((await sendTarget(shop, "/files/a/b")).status).toBe(402);
    expect((await sendTarget(shop, "/files")).status).toBe(404);
    expect(shop.errors).toEqual([]);
    const other = await open(serveFiles, { "GET /files/{*rest}": { accepts: option() } });
    expect((await sendTarget(other, "/files/")).status).toBe(402);
    expect(other.errors).toEqual([]);
  });

  it("closes a path of the handler in a router, in another letter case, and with parameters", async () => {
    const serve = (app: Express) => {
      const router = express.Router();
      router.get(["/nothing", "/V/:v/files/{*path}"], (_request, response) => {
        response.send(content);
      });
      app.use(router);
    };
    const shop = await open(serve, { "GET /v/:version/files/*rest": { accepts: option() } });
    expect((await sendTarget(shop, "/v/1/files/")).status).toBe(503);
  });

  const end: RequestHandler = (_request, response) => void response.send(content);
  const list: RequestHandler = (_request, response) => void response.send("index");
  const pass: RequestHandler = (_request, _response, next) => next();
  const router = (path: string, ...handlers: RequestHandler[]) =>
    express.Router().get(path, ...handlers);

  const taken: [string, string, string, (app: Express) => void][] = [
    [
      "a mounted router",
      "/v1/files/*rest",
      "/v1/files/",
      (app) => app.use("/v1", router("/files/{*path}", end)),
    ],
    [
      "a router's root",
      "/files/*rest",
      "/files/",
      (app) => app.use("/files", router("/{*path}", end)),
    ],
    [
      "a router's root",
      "/files/*rest",
      "/files",
      (app) => app.use("/files", router("/{*path}", end)),
    ],
    [
      "a router's root, and a key that has the slash",
      "/files/{*rest}",
      "/files",
      (app) => app.use("/files", router("/{*path}", end)),
    ],
    [
      "a router's root, and further parts that are optional",
      "/files/{*rest}{/as/:type}",
      "/files",
      (app) => app.use("/files", router("/{*path}{/as/:type}", end)),
    ],
    [
      "an optional parameter as a router's root",
      "/files/{:name}",
      "/files",
      (app) => app.use("/files", router("/{:name}", end)),
    ],
    [
      "a router's wildcard without a slash",
      "/files/*rest",
      "/files",
      (app) => app.use("/files", router("*path", end)),
    ],
    [
      "such a wildcard with a quoted name",
      "/files/{*rest}",
      "/files",
      (app) => app.use("/files", router('*"the path"', end)),
    ],
    [
      "such a wildcard in braces",
      "/files/{*rest}",
      "/files",
      (app) => app.use("/files", router("{*path}", end)),
    ],
    ["the slash in the wildcard", "/files/*rest", "/files/", (app) => app.get("/files*path", end)],
    [
      "a root of routers in each other",
      "/v1/{*any}/{*rest}",
      "/v1",
      (app) => app.use("/v1", express.Router().use("/{*any}", router("/{*path}", end))),
    ],
    ["a wider path", "/data/top/*rest", "/data/top/", (app) => app.get("/data/:name/{*path}", end)],
    ["a slash in the braces", "/files/*rest", "/files", (app) => app.get("/files{/*path}", end)],
    ["a slash at the end", "/files/*rest", "/files/", (app) => app.get("/files/{*path}/", end)],
    [
      "an escaped text",
      "/my files/*rest",
      "/my%20files/",
      (app) => app.get("/my%20files/{*path}", end),
    ],
    ["a sign in the name", "/files/*$rest", "/files/", (app) => app.get("/files/{*$path}", end)],
    [
      "an optional part before it",
      "/docs/{:lang}/*page",
      "/docs/en/",
      (app) => app.get("/docs/{:lang}/{*page}", end),
    ],
    ["a literal %25 before it", "/:a/*b", "/x%25/", (app) => app.get("/:a/{*b}", end)],
    ["no slash before it", "/files/x*rest", "/files/x", (app) => app.get("/files/x{*path}", end)],
    [
      "middleware before it",
      "/files/*rest",
      "/files/",
      (app) => app.all("/{*any}", pass).all("/:any", pass).get("/files/{*path}", end),
    ],
  ];

  it.each(taken)("closes the folder with %s: %s, %s", async (_name, path, target, serve) => {
    const shop = await open(serve, { [`GET ${path}`]: { accepts: option() } });
    expect((await sendTarget(shop, target)).status).toBe(503);
    expect(shop.errors).toHaveLength(1);
  });

  it.each([
    ["strict routing", "/files"],
    ["case sensitive routing", "/FILES/"],
  ])("closes the folder where %s keeps a handler of %s from it", async (setting, path) => {
    const shop = await openShop({
      express,
      routes: { "GET /files/*rest": { accepts: option() } },
      before: (app) => void app.enable(setting),
      serve: (app) => app.get(path, list).get("/files/{*path}", end),
    });
    opened.push(shop);
    expect((await sendTarget(shop, "/files/")).status).toBe(503);
    expect((await sendTarget(shop, path)).status).toBe(200);
  });

  it("closes the folder of an application that is mounted, with the gate in its router", async () => {
    const listening = await openTree(express, ["/files/*rest"], (app, gate) => {
      const files = express.Router().use(gate).get("/files/{*path}", end);
      app.use("/m", express().use("/r", files));
    });
    expect((await sendTarget(listening, "/m/r/files/")).status).toBe(503);
    expect((await sendTarget(listening, "/m/r/files/a")).status).toBe(402);
  });

  const left: [string, (app: Express) => void][] = [
    ["a handler of /files", (app) => app.get("/files", list).get("/files/{*path}", end)],
    ["a handler of /files/", (app) => app.get("/files/", list).get("/files/{*path}", end)],
    ["a handler of /:page", (app) => app.get("/:page", list).get("/files/{*path}", end)],
    [
      "a handler before a router",
      (app) => app.get("/files/", list).use(router("/files/{*path}", end)),
    ],
    ["a router's root", (app) => app.use("/files", router("/", list)).get("/files/{*path}", end)],
    [
      "a router mounted elsewhere",
      (app) => app.use("/v2", router("/files/{*path}", end)).get("/files", list),
    ],
  ];

  it.each(left)("leaves the folder to %s", async (_name, serve) => {
    const shop = await open(serve);
    const { status, answer } = await sendTarget(shop, "/files/");
    expect(status).toBe(200);
    expect(answer).toContain("index");
    expect(shop.errors).toEqual([]);
  });

  it("closes a folder of Express 4 that a router reads as its root, and no other", async () => {
    const paths = ["/files/*", "/data/*", "/list/*"];
    const listening = await openTree(express4, paths, (app, gate) => {
      app.use(gate);
      app.use("/files", express4.Router().get("/*", end));
      app.use("/data", express4.Router().get("/", list).get("/*", end));
      app.use("/list", express4.Router().get(["/", "*"], list));
    });
    expect((await sendTarget(listening, "/files")).status).toBe(503);
    expect((await sendTarget(listening, "/FILES?a=b")).status).toBe(503);
    expect((await sendTarget(listening, "/files/")).status).toBe(402);
    expect((await sendTarget(listening, "/data")).answer).toContain("index");
    expect((await sendTarget(listening, "/list")).answer).toContain("index");
    expect(listening.errors).toHaveLength(1);
    expect(String(listening.errors[0])).toContain('Add a key of "/files"');
  });

  it.each([
    ["/files/*", "*"],
    ["/files/*", "/:path(*)"],
    ["/files/:path(*)", "*"],
    ["/files/:path(.*)", "/*"],
  ])("closes the folder of the key %s on Express 4 with a router's %s", async (key, path) => {
    const listening = await openTree(express4, [key], (app, gate) => {
      app.use(gate).use("/files", express4.Router().get(path, end));
    });
    expect((await sendTarget(listening, "/files")).status).toBe(503);
    expect((await sendTarget(listening, "/files/a")).status).toBe(402);
  });

  it.each([
    ["/data/*rest", "/{*any}"],
    ["/data/*rest", "*any"],
  ])("leaves a gate's mount, and its key %s, to the wildcard %s", async (key, path) => {
    const paths = [key, key.replace("data", "r/files")];
    const listening = await openTree(express, paths, (app, gate) => {
      const files = express.Router().get(path, end);
      app.use("/data", gate);
      app.use("/r", express.Router().use("/files", gate).use("/files", files));
      app.get(path, list);
    });
    expect((await sendTarget(listening, "/data")).answer).toContain("index");
    expect((await sendTarget(listening, "/data/a")).status).toBe(402);
    expect((await sendTarget(listening, "/r/files")).status).toBe(503);
  });

  it.each([
    ["/files/*", "*", 4],
    ["/files/*rest", "*splat", 5],
    ["/files/*rest", "{*splat}", 5],
  ])("leaves the folder of the key %s to an index behind middleware at %s", async (...row) => {
    const [key, path, version] = row;
    const { express: either = express } = expressVersions[version - 4] ?? {};
    const free = (...handlers: RequestHandler[]) => either.Router().all(path, ...handlers);
    const paths = [key, key.replace("files", "data")];
    const listening = await openTree(either, paths, (app, gate) => {
      app.use(gate).all(path, pass).get("/", list);
      app.use("/files", free(pass).get("/", list).get(path, end));
      app.use("/data", free(pass, end)).get("/data", list);
    });
    expect((await sendTarget(listening, "/")).answer).toContain("index");
    expect((await sendTarget(listening, "/files")).answer).toContain("index");
    expect((await sendTarget(listening, "/files/a")).status).toBe(402);
    expect((await sendTarget(listening, "/data")).status).toBe(503);
  });

  it("leaves a home page behind middleware, beside a key of all other paths", async () => {
    const serve = (app: Express) => app.all("*splat", pass).get("/", list).get("/*rest", end);
    const shop = await open(serve, { "GET /*rest": { accepts: option() } });
    expect((await sendTarget(shop, "/")).answer).toContain("index");
    expect((await sendTarget(shop, "/a")).status).toBe(402);
    expect(shop.errors).toEqual([]);
  });

  it("leaves it to an optional parameter whose other paths no key takes", async () => {
    const serve = (app: Express) => app.get("/docs/{:lang}", list);
    const shop = await open(serve, { "GET /docs/{:lang}/*page": { accepts: option() } });
    for (const path of ["/docs/", "/docs/en"]) {
      expect((await sendTarget(shop, path)).answer).toContain("index");
    }
  });

  it("refuses a folder that cannot be decoded, behind an expression that reads no parameter", async () => {
    const serve = (app: Express) => app.use(/^\/docs\/[^/]+/, router("/{*page}", end));
    const shop = await open(serve, { "GET /docs/:lang/*page": { accepts: option() } });
    expect((await sendTarget(shop, "/docs/%ff/")).status).toBe(400);
    expect((await sendTarget(shop, "/docs/en/")).status).toBe(503);
    expect((await sendTarget(shop, "/docs/en/a")).status).toBe(402);
  });

  it("leaves a mounted application to its parent's page for all paths", async () => {
    const listening = await openTree(express, ["/api/*rest"], (app, gate) => {
      app.use("/api", express().use(gate)).get("/{*any}", list);
    });
    expect((await sendTarget(listening, "/api")).answer).toContain("index");
    expect((await sendTarget(listening, "/api/a")).status).toBe(402);
  });

  it("closes the folder where the handler before it has another method", async () => {
    const shop = await open((app) => {
      app.post("/files", (_request, response) => void response.send("uploaded"));
      serveFiles(app);
    });
    expect((await sendTarget(shop, "/files/")).status).toBe(503);
    expect((await sendTarget(shop, "/files/", { method: "POST" })).status).toBe(200);
  });

  it("leaves the folder to a wildcard of all paths", async () => {
    const shop = await open((app) => {
      app.get("/{*any}", (_request, response) => void response.send("page"));
    });
    expect((await sendTarget(shop, "/files/")).status).toBe(200);
    expect(shop.errors).toEqual([]);
  });
});
