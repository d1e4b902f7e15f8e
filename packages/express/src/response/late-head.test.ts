import type { Listening } from "@coinslot/devnet";
import compression from "compression";
import type { RequestHandler, Response } from "express";
import { afterEach, describe, expect, it } from "vitest";
import { createBuyer } from "../testing/buyer.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { openShop, option } from "../testing/shop.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

/** Sets a property as a handler in JavaScript may. */
function set(response: Response, name: "statusCode" | "statusMessage", value: unknown): void {
  Reflect.set(response, name, value);
}

const clearStatus = (response: Response) => set(response, "statusCode", undefined);

/** Changes that come too late for Node, which has sent the head. */
const changes: [title: string, change: (response: Response) => void][] = [
  ["a status of undefined", clearStatus],
  ["a status that is no number", (response) => set(response, "statusCode", "none")],
  ["the status 99", (response) => set(response, "statusCode", 99)],
  ["the status 1000", (response) => set(response, "statusCode", 1000)],
  ["another status of success", (response) => set(response, "statusCode", 201)],
  ["another status text", (response) => set(response, "statusMessage", "Late")],
  ["a status text that no head can hold", (response) => set(response, "statusMessage", "☕")],
];

const write = (response: Response) => response.write("first ");
const writeHead = (response: Response) => response.writeHead(200, "Good", { "X-Kind": "early" });
const flushHeaders = (response: Response) => response.flushHeaders();

describe.each(expressVersions)("the head of a paid answer on $name", ({ express }) => {
  async function open(handler: RequestHandler, before: RequestHandler[] = []) {
    const shop = await openShop({
      express,
      routes: { "GET /paid": { accepts: option() } },
      serve(app) {
        app.set("env", "test");
        app.get(["/paid", "/free"], ...before, handler);
      },
    });
    opened.push(shop);
    const { headers } = await createBuyer().payFor(`${shop.url}/paid`);
    const ask = async (path: string) => {
      const response = await fetch(`${shop.url}${path}`, { headers });
      const { status, statusText } = response;
      return {
        status,
        statusText,
        kind: response.headers.get("X-Kind"),
        body: await response.text(),
      };
    };
    return { shop, headers, ask };
  }

  it.each([
    ...changes.map(([title, change]) => [title, "a write", change, write] as const),
    ["a status of undefined", "writeHead", clearStatus, writeHead],
    ["a status of undefined", "flushHeaders", clearStatus, flushHeaders],
  ] as const)("stays as Node sends it, for %s after %s", async (_case, _how, change, begin) => {
    const { shop, ask } = await open((_request, response) => {
      begin(response);
      change(response);
      response.end("last");
    });
    const free = await ask("/free");
    expect(free).toMatchObject({ status: 200, body: expect.stringMatching(/last$/) });
    expect(await ask("/paid")).toEqual(free);
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it.each(changes)(
    "stays as it began, compressed after the gate, for %s",
    async (_case, change) => {
      const compress: RequestHandler = compression({ threshold: 0 });
      const { shop, ask } = await open(
        (_request, response) => {
          response.type("text").write("first ");
          change(response);
          response.end("last");
        },
        [compress],
      );
      const free = await ask("/free");
      expect(free).toMatchObject({ status: 200, body: "first last" });
      expect(await ask("/paid")).toEqual(free);
      expect(shop.facilitator.settled).toHaveLength(1);
    },
  );

  it("takes no header after its first byte: a length would cut the paid answer", async () => {
    const { shop, ask } = await open((_request, response) => {
      response.setHeader("X-Kind", "early");
      response.write("first ");
      if (!response.headersSent) {
        response.setHeader("Content-Length", 1);
        response.setHeader("X-Kind", "late");
      }
      response.end("last");
    });
    expect(await ask("/paid")).toMatchObject({ status: 200, kind: "early", body: "first last" });
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it("the head of a failure is no success after its first byte, and the payment is not charged", async () => {
    const { shop, ask } = await open((_request, response) => {
      response.status(500).write("sorry");
      response.status(200).end();
    });
    const free = await ask("/free");
    expect(await ask("/paid")).toEqual(free);
    expect(free.status).toBe(500);
    expect(shop.facilitator.settled).toEqual([]);
  });

  it("the head of an error answer after a failure's first byte is all that is sent", async () => {
    const { shop, ask } = await open((_request, response) => {
      response.status(404).write("half of the first");
      response.status(500).json({ sorry: true });
    });
    expect(await ask("/paid")).toMatchObject({ status: 500, body: '{"sorry":true}' });
    expect(shop.facilitator.settled).toEqual([]);
  });

  it("may hold a bigint, and is delivered again after a lost settlement", async () => {
    const { shop, headers } = await open((_request, response) => {
      Reflect.apply(response.setHeader, response, ["X-Kind", 5n]);
      response.end("sold");
    });
    shop.facilitator.onSettle = async (settle) => {
      settle();
      throw new Error("lost");
    };
    const keyed = { ...headers, "Idempotency-Key": "0123456789abcdef" };
    const first = await fetch(`${shop.url}/paid`, { headers: keyed });
    expect(first.status).toBe(503);
    shop.facilitator.onSettle = async (settle) => settle();
    const again = await fetch(`${shop.url}/paid`, { headers: keyed });
    expect({ status: again.status, body: await again.text() }).toEqual({
      status: 200,
      body: "sold",
    });
  });
});
