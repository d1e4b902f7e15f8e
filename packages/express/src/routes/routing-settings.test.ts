import type { Listening } from "@coinslot/devnet";
import type { Express } from "express";
import { afterEach, describe, expect, it } from "vitest";
import type { PaymentRoutes } from "../index.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { sendTarget } from "../testing/send-target.ts";
import { openShop, option } from "../testing/shop.ts";

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
  ])("are still guarded with case sensitivity, and %s in the application", async (_what, serve) => {
    const shop = await open({ "GET /paid": { accepts: option() } }, serve, (app) =>
      app.enable("case sensitive routing"),
    );
    for (const target of ["/paid", "/PAID"]) {
      expect((await sendTarget(shop, target)).answer).not.toContain(content);
    }
  });

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
