import { parse } from "node:url";
import type { Listening } from "@coinslot/devnet";
import type { Request, Response } from "express";
import { afterEach, describe, expect, it } from "vitest";
import { expressVersions } from "../testing/express-versions.ts";
import { sendTarget } from "../testing/send-target.ts";
import { openShop, option } from "../testing/shop.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

const content = "the content that is sold";

/** Parsers of a request target that take `//host` for a host. */
const parsers = {
  "new URL(target, base)": (target: string) => new URL(target, "http://shop").pathname,
  // As http-proxy-middleware and serve-handler do.
  "url.parse(target)": (target: string) => parse(target).pathname ?? "",
  "url.parse(target, true, true)": (target: string) => parse(target, true, true).pathname ?? "",
  "new URL of decoded text": (target: string) =>
    new URL(decodeURIComponent(target), "http://shop").pathname,
  "url.parse behind a server with url.parse": (target: string) =>
    parse(parse(target).pathname ?? "").pathname ?? "",
  "new URL(target, base) behind a fetch": (target: string) =>
    new URL(new URL(`http://own${target}`).pathname, "http://shop").pathname,
  "new URL(target, base) behind a fetch of decoded text": (target: string) =>
    new URL(new URL(`http://own${decodeURIComponent(target)}`).pathname, "http://shop").pathname,
};

/** Serves `/weather`, by any of these readings. */
function serveWeather({ url }: Request, response: Response): void {
  const paths = Object.values(parsers).map((pathOf) => {
    try {
      return pathOf(url).replace(/\/+/g, "/");
    } catch {
      return "";
    }
  });
  response.send(paths.includes("/weather") ? content : "");
}

const targets = [
  "//u@x/weather",
  "//u:p@x:80/weather?y",
  "//@x/weather",
  "/\\u@x/weather",
  "//u@x/./weather",
  "//u@x//weather",
  "//u@x/a/../weather",
  "//u@x/%77eather",
  "//u@x\\weather",
  "//u@x//u@y/weather",
  "//x/weather",
  "///x/weather",
  "/\\/x/weather",
  "//[::1]/weather",
  "/./..//x/weather",
  "/%09/x/weather",
  "/%2Fx/weather",
  "/%5c%0ax/weather",
  "//./x/weather",
  "//a/../x/weather",
  "/a/..//x/weather",
  "/%2e%2f%2fx/weather",
  "/%252e//x/weather",
];

describe.each(expressVersions)("a handler on $name that reads a target's host", ({ express }) => {
  const at = (price: `$${number}`) => ({ accepts: option({ price }) });

  it.each(targets)("serves nothing unpaid at %s", async (target) => {
    const shop = await openShop({
      express,
      routes: { "GET /weather": at("$1") },
      serve: (app) => app.use(serveWeather),
    });
    opened.push(shop);
    const { answer, status } = await sendTarget(shop, target);
    expect(answer).not.toContain(content);
    expect(status).toBe(402);
  });

  it.each(targets.flatMap((target) => [`/api${target}`, `/api/${target}`, `//api${target}`]))(
    "serves nothing unpaid at %s behind a mount",
    async (target) => {
      const shop = await openShop({
        express,
        routes: { "GET /api/weather": at("$1") },
        serve: (app) => app.use("/api", serveWeather),
      });
      opened.push(shop);
      const { answer, status } = await sendTarget(shop, target);
      expect(answer).not.toContain(content);
      expect(status).toBe(402);
    },
  );

  it.each(["/api//u@x/weather", "/api///u@x/weather", "/api/\\u@x/weather"])(
    "sells %s by the dearer of two keys",
    async (target) => {
      const wildcard = express === expressVersions[0]?.express ? "*" : "*rest";
      const shop = await openShop({
        express,
        routes: { "GET /api/weather": at("$5"), [`GET /api/${wildcard}`]: at("$0.002") },
        options: { app: express() },
        serve: (app) => app.get(`/api/${wildcard}`, serveWeather),
      });
      opened.push(shop);
      expect((await sendTarget(shop, target)).answer).toContain('"5000000"');
    },
  );

  it.each([
    "//u@x%77eather",
    "//u@x:80weather",
    "//u@[x]weather",
    "/\\u@x%25/weather",
    "//./u@x%77eather",
  ])("refuses %s, whose host parsers end differently", async (target) => {
    const shop = await openShop({
      express,
      routes: { "GET /weather": at("$1") },
      serve: (app) => app.use(serveWeather),
    });
    opened.push(shop);
    expect((await sendTarget(shop, target)).status).toBe(400);
  });

  it("refuses more than five such hosts, also with escaped slashes", async () => {
    const shop = await openShop({
      express,
      routes: { "GET /weather": at("$1") },
      serve: (app) => app.use(serveWeather),
    });
    opened.push(shop);
    for (const host of ["/\\x", "//x", "/%2Fx", "//%2F", "//\\", "/%09/%2F"]) {
      expect((await sendTarget(shop, `${host.repeat(6)}/y`)).status).toBe(400);
      expect((await sendTarget(shop, `${host.repeat(5)}/y`)).status).toBe(200);
    }
  });
});
