import type { Listening } from "@coinslot/devnet";
import type { RequestHandler } from "express";
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
const long = "x".repeat(15_000);

it.each(expressVersions)(
  "a key of three wildcards on $name takes no path of more than 200 characters",
  async ({ name, express }) => {
    const path = name === "Express 4" ? "/files/*/p/*/q/*" : "/files/*a/p/*b/q/*c";
    const shop = await openShop({
      express,
      routes: { [`GET ${path}`]: { accepts: option() } },
      serve: (app) => app.get(path, (_request, response) => void response.send(content)),
      options: { app: express() },
    });
    opened.push(shop);
    const ask = async (target: string) => (await sendTarget(shop, target)).status;
    const start = "/files/a/p/b/q/";
    expect(await ask(start.padEnd(200, "x"))).toBe(402);
    expect(await ask(start.padEnd(201, "x"))).toBe(400);
    expect(await ask(`/pages/${long}`)).toBe(404);
    expect(await ask(`/filesystem/${long}`)).toBe(404);
  },
);

it("a group of Express 4 that takes slashes counts as a wildcard", async () => {
  const express = expressVersions.find(({ name }) => name === "Express 4")?.express;
  if (express === undefined) throw new Error("No Express 4");
  const accepts = option();
  const shop = await openShop({
    express,
    routes: {
      "GET /files/:a(.+)/y/:b([^?]{1,})": { accepts },
      "GET /pages/:a(\\d+)/y/:b([^/]+)": { accepts },
      "GET /four/:a(.+)/:b(.+)/:c(.+)/:d(.+)": { accepts },
    },
    serve: (app) => app.use((_request, response) => void response.send("free")),
    options: { app: express() },
  });
  opened.push(shop);
  const ask = async (target: string) => (await sendTarget(shop, target)).status;
  expect(await ask("/files/x/y/".padEnd(1_000, "x"))).toBe(402);
  expect(await ask("/files/x/y/".padEnd(1_001, "x"))).toBe(400);
  expect(await ask("/four/a/b/c/d".padEnd(40, "x"))).toBe(402);
  expect(await ask("/four/a/b/c/d".padEnd(41, "x"))).toBe(400);
  expect(await ask("/pages/1/y/".padEnd(1_001, "x"))).toBe(402);
  expect(await ask("/pages/x/y/".padEnd(1_001, "x"))).toBe(200);
});

describe("the plain start of a key with several wildcards", () => {
  const [{ express: express4 } = {}, { express: express5 } = {}] = expressVersions;

  it.each([
    { express: express5, path: "/files{/*a}/x{/*b}", start: "/files" },
    { express: express5, path: "/files{-*a}/x/*b", start: "/files-" },
    { express: express5, path: "/files/:id/*a/x/*b", start: "/files/" },
    { express: express4, path: "/files/:id?*-*", start: "/filesystem" },
    { express: express4, path: "/files/?*-*", start: "/filesystem" },
  ])("is $start for $path, and other paths stay free", async ({ express, path, start }) => {
    if (express === undefined) throw new Error("No Express");
    const shop = await openShop({
      express,
      routes: { [`GET ${path}`]: { accepts: option() } },
      serve: (app) => app.get("/:a{/*b}", (_request, response) => void response.send("free")),
      options: { app: express() },
    });
    opened.push(shop);
    const ask = async (target: string) => (await sendTarget(shop, target)).status;
    expect(await ask(`${start}${long}`)).toBe(400);
    expect(await ask(`/pages/${long}`)).toBe(express === express5 ? 200 : 404);
    if (start === "/files/") expect(await ask(`/filesystem/${long}`)).not.toBe(400);
  });
});

describe.each(expressVersions)("a key of two wildcards on $name", ({ name, express }) => {
  const inDialect = (path: string) => (name === "Express 4" ? path.replace(/\*\w/g, "*") : path);

  /** Serves paths in their order, all but `/free/:text` sold, at a mount too. */
  async function open(...paths: string[]) {
    const accepts = option();
    const mounted = paths.map((path) => `/m${path}`);
    const routes: PaymentRoutes = Object.fromEntries(
      [...paths, ...mounted].map((path) => [`GET ${inDialect(path)}`, { accepts }]),
    );
    const send: RequestHandler = (_request, response) => void response.send(content);
    const shop = await openShop({
      express,
      routes,
      options: { app: express() },
      serve(app) {
        const router = express.Router();
        for (const path of paths) router.get(inDialect(path), send);
        router.get("/free/:text", (_request, response) => void response.send("free"));
        app.use("/m", router).use(router);
      },
    });
    opened.push(shop);
    return async (target: string, method = "GET") => {
      const { status, answer } = await sendTarget(shop, target, { method });
      expect(answer).not.toContain(content);
      return status;
    };
  }

  it.each(["", "/m"])("takes no long path behind %j, in any spelling", async (mount) => {
    const ask = await open("/files/*a/y/*b");
    const shorter = "/files/x/y/".padEnd(900, "x");
    expect(await ask(mount + shorter)).toBe(402);
    for (const path of [
      `/files/${long}`,
      `/FILES/x/y/${long}`,
      `/files/${"%41".repeat(5_000)}`,
      `/files${"/y".repeat(7_000)}`,
    ]) {
      expect(await ask(mount + path)).toBe(400);
      expect(await ask(`http://shop${mount}${path}`)).toBe(400);
    }
  });

  it.each(["", "/m"])("leaves other paths behind %j, queries and methods", async (mount) => {
    const ask = await open("/prompt/:text", "/files/*a/y/*b");
    expect(await ask(`${mount}/free/${long}`)).toBe(200);
    expect(await ask(`${mount}/prompt/${long}`)).toBe(402);
    expect(await ask(`${mount}/files/x/y/z?${long}`)).toBe(402);
    expect(await ask(`${mount}/files/x/y/${long}`, "POST")).toBe(404);
  });

  it("takes none from an earlier key, and all others where it begins with a wildcard", async () => {
    const ask = await open("/prompt/:text", "/*a/y/*b");
    expect(await ask(`/prompt/${long}`)).toBe(402);
    expect(await ask(`/free/${long}`)).toBe(400);
    expect(await ask("/free/text")).toBe(200);
  });
});
