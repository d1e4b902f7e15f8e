import type { Listening } from "@coinslot/devnet";
import { ConfigurationError } from "@coinslot/protocol";
import express, { type Express } from "express";
import { afterEach, describe, expect, it } from "vitest";
import type { PaymentRoutes } from "../index.ts";
import { sendTarget } from "../testing/send-target.ts";
import { openShop, option } from "../testing/shop.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

const content = "the content that is sold";

async function open(
  serve: (app: Express) => void,
  routes: PaymentRoutes = { "GET /files/*rest": { accepts: option() } },
) {
  const shop = await openShop({ express, routes, serve });
  opened.push(shop);
  return shop;
}

/** The handler of a key, as NestJS registers `@Get("files/*")` from version 11 on. */
function serveFiles(app: Express): void {
  app.get("/files/{*path}", (_request, response) => void response.send(content));
}

describe("a handler on Express 5 whose wildcard may be empty, and a key whose wildcard may not", () => {
  it.each(["/files/", "/FILES/", "//files/", "/files/?a=b", "http://shop/files/"])(
    "closes %s, which only the handler takes",
    async (target) => {
      const shop = await open(serveFiles);
      for (const method of ["GET", "HEAD"]) {
        const { status, answer } = await sendTarget(shop, target, { method });
        expect(status).toBe(503);
        expect(answer).not.toContain(content);
      }
      expect(shop.errors).toEqual([expect.any(ConfigurationError)]);
      expect(String(shop.errors[0])).toMatch(/"GET \/files\/\*rest" .*"\/files\/\{\*rest\}"/);
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

  it("closes a path of the handler in a router, under a mount of its own, and with parameters", async () => {
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

  it.each(["/files", "/files/"])(
    "leaves the folder to a handler of %s before it",
    async (folder) => {
      const shop = await open((app) => {
        app.get(folder, (_request, response) => void response.send("index"));
        serveFiles(app);
      });
      expect((await sendTarget(shop, "/files/")).status).toBe(200);
      expect(shop.errors).toEqual([]);
    },
  );

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
