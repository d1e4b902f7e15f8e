import type { RequestListener } from "node:http";
import { type Listening, listen } from "@coinslot/devnet";
import type { Express } from "express";
import { afterEach, describe, expect, it } from "vitest";
import { type PaymentRoutes, paymentMiddleware } from "../index.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { sendTarget } from "../testing/send-target.ts";
import { openShop, option } from "../testing/shop.ts";
import { applicationRouter } from "./application-router.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

const content = "the content that is sold";

describe.each(expressVersions)("routing settings on $name", ({ express }) => {
  async function open(
    routes: PaymentRoutes,
    serve: (app: Express) => void,
    before: (app: Express) => void,
  ) {
    const shop = await openShop({ express, routes, serve, before });
    opened.push(shop);
    return shop;
  }

  it("leave other routes beside the paid one with case sensitivity", async () => {
    const shop = await open(
      { "GET /paid": { accepts: option() } },
      (app) => {
        app.get("/paid", (_request, response) => void response.send(content));
        app.get("/PAID", (_request, response) => void response.send("free"));
        app.get("/paid/", (_request, response) => void response.send("free"));
      },
      (app) => app.enable("case sensitive routing").enable("strict routing"),
    );
    expect((await sendTarget(shop, "/paid")).status).toBe(402);
    expect((await sendTarget(shop, "/PAID")).answer).toContain("free");
    expect((await sendTarget(shop, "/paid/")).answer).toContain("free");
  });

  it("are looked for once in a request, however many forms its path has", async () => {
    let reads = 0;
    const shop = await open(
      { "GET /files/{*rest}": { accepts: option() } },
      (app) => {
        const router = applicationRouter(app);
        const stack: unknown = Reflect.get(router, "stack");
        const get = () => {
          reads += 1;
          return stack;
        };
        Object.defineProperty(router, "stack", { get });
      },
      (app) => app.enable("case sensitive routing"),
    );
    const readsOf = async (path: string) => {
      reads = 0;
      await sendTarget(shop, path);
      return reads;
    };
    const plain = await readsOf("/FILES/a");
    expect(await readsOf("/FILES/a/../b%2f%2e./c/../d/./../e%3f")).toBeLessThanOrEqual(plain);
  });

  it("are not those of an application that middleware has called as a function before", async () => {
    const other = express().enable("case sensitive routing").enable("strict routing");
    other.get("/own", (_request, response) => void response.send("own"));
    const shop = await open(
      { "GET /paid": { accepts: option() } },
      (app) => app.get("/paid", (_request, response) => void response.send(content)),
      (app) => app.use((request, response, next) => other(request, response, next)),
    );
    for (const path of ["/paid", "/PAID", "/paid/"]) {
      expect((await sendTarget(shop, path)).status).toBe(402);
    }
  });

  it.each([
    [
      "a router that does not",
      (app: Express) => {
        const router = express.Router();
        router.get("/paid", (_request, response) => void response.send(content));
        app.use(router);
      },
    ],
    [
      "another application",
      (app: Express) => {
        const other = express();
        other.get("/paid", (_request, response) => void response.send(content));
        app.use(other);
      },
    ],
    [
      "another application in a router",
      (app: Express) => {
        const router = express.Router({ caseSensitive: true });
        const other = express();
        other.get("/paid", (_request, response) => void response.send(content));
        app.use(router.use(other));
      },
    ],
    [
      "a router that handles a route",
      (app: Express) => {
        const router = express.Router();
        router.get("/paid", (_request, response) => void response.send(content));
        app.get("/:name", router);
      },
    ],
    [
      "a function on a path of its own",
      (app: Express) => {
        app.use("/paid", (_request, response) => void response.send(content));
      },
    ],
    [
      "a route of a regular expression",
      (app: Express) => {
        app.get(/^\/paid$/i, (_request, response) => void response.send(content));
      },
    ],
    [
      "a router at a regular expression",
      (app: Express) => {
        const router = express.Router({ caseSensitive: true });
        router.get("/", (_request, response) => void response.send(content));
        app.use(/^\/paid/i, router);
      },
    ],
  ])("are still guarded with case sensitivity, and %s in the application", async (_case, serve) => {
    const shop = await open({ "GET /paid": { accepts: option() } }, serve, (app) =>
      app.enable("case sensitive routing"),
    );
    for (const target of ["/paid", "/PAID"]) {
      expect((await sendTarget(shop, target)).answer).not.toContain(content);
    }
  });

  it("do not bind a static server, whose file system may not distinguish letter case", async () => {
    const shop = await open(
      { "GET /paid": { accepts: option() } },
      (app) => app.use(express.static(import.meta.dirname)),
      (app) => app.enable("case sensitive routing"),
    );
    expect((await sendTarget(shop, "/PAID")).status).toBe(402);
  });

  it("are still guarded with strict slashes, and a route of a regular expression", async () => {
    const shop = await open(
      { "GET /paid": { accepts: option() } },
      (app) => {
        app.get(/^\/paid\/?$/, (_request, response) => void response.send(content));
      },
      (app) => app.enable("strict routing"),
    );
    for (const target of ["/paid", "/paid/"]) {
      expect((await sendTarget(shop, target)).status).toBe(402);
    }
  });

  it.each([
    ["a router", (inner: Express) => express().use(express.Router().use("/api", inner))],
    [
      "a function that cuts the prefix",
      (inner: Express): RequestListener =>
        (request, response) => {
          const { url = "" } = request;
          Object.assign(request, { originalUrl: url, url: url.slice("/api".length) });
          inner(request, response);
        },
    ],
  ])(
    "routing settings of an application bind none of the paths by which %s mounts it",
    async (_case, mount) => {
      const inner = express().enable("case sensitive routing");
      const routes: PaymentRoutes = { "GET /api/paid": { accepts: option() } };
      const gate = paymentMiddleware(routes, createPaperFacilitator(), { app: inner });
      inner.use(gate).get("/paid", (_request, response) => void response.send(content));
      await gate.ready();
      const shop = await listen(mount(inner));
      opened.push(shop);
      for (const target of ["/api/paid", "/API/paid"]) {
        expect((await sendTarget(shop, target)).status).toBe(402);
      }
    },
  );

  it.each(["GET /api", "GET /api/"] as const)(
    "are still guarded with strict slashes, and a router whose root is %s",
    async (key) => {
      const shop = await open(
        { [key]: { accepts: option() } },
        (app) => {
          const router = express.Router({ strict: true });
          router.get("/", (_request, response) => void response.send(content));
          app.use("/api", router);
        },
        (app) => app.enable("strict routing"),
      );
      for (const target of ["/api", "/api/"]) {
        expect((await sendTarget(shop, target)).status).toBe(402);
      }
    },
  );
});
