import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { type Listening, listen } from "@coinslot/devnet";
import type { Request } from "express";
import { afterEach, describe, expect, it } from "vitest";
import { expressVersions } from "../testing/express-versions.ts";
import { sendTarget } from "../testing/send-target.ts";
import { openShop, option } from "../testing/shop.ts";

const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

const content = "the content that is sold";

function open(listening: Listening): Listening {
  closing.push(() => listening.close());
  return listening;
}

/** A server of everything below `/files/`, which decodes each byte by itself, as nginx does. */
async function openBytes(): Promise<string> {
  const server = createServer((request, response) => {
    const path = request.url?.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
    response.end(path?.startsWith("/files/") ? content : "");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe.each(expressVersions)("a handler on $name that sends paths on", ({ name, express }) => {
  /** A server of the file `/files/b`. */
  async function openFiles(): Promise<Listening> {
    const folder = await mkdtemp(join(tmpdir(), "static-"));
    closing.push(() => rm(folder, { recursive: true }));
    await mkdir(join(folder, "files"));
    await writeFile(join(folder, "files", "b"), content);
    return open(await listen(express().use(express.static(folder))));
  }

  /** A shop of `/files/b`, whose handler fetches everything from such a server. */
  async function openFetching(pathOf: (request: Request) => string): Promise<Listening> {
    const files = await openFiles();
    const shop = await openShop({
      express,
      routes: { "GET /files/b": { accepts: option() } },
      serve: (app) =>
        app.use(async (request, response) => {
          response.send(await (await fetch(files.url + pathOf(request))).text());
        }),
    });
    return open(shop);
  }

  it.each([
    "/files//../b",
    "/zz%2fa/../files/b",
    "/zz%5Ca/%2e./files/b",
    "/files/\\../b",
    "/zz//.././files//../b",
    "/zz/../files/b",
  ])("sells %s, which a fetch sends to the paid path", async (target) => {
    const shop = await openFetching(({ originalUrl }) => originalUrl);
    const { status, answer } = await sendTarget(shop, target);
    expect(answer).not.toContain(content);
    expect(status).toBe(402);
  });

  it.each([
    "/zz/%252e%252e/files/b",
    "/zz%2f%2e%2e%2ffiles/b",
    "/files%2f%2f..%2fb",
    "/fil%09es/b",
    "/files/b%3fx",
    "/files/b%23x",
    "/files/b%20",
  ])("sells %s, which does so once it is decoded", async (target) => {
    const shop = await openFetching(({ path }) => decodeURIComponent(path));
    const { status, answer } = await sendTarget(shop, target);
    expect(answer).not.toContain(content);
    expect(status).toBe(402);
  });

  it.each([
    "/zz//../files/b%3F",
    "/zz//../files/b%23a",
    "/zz//../fil%09es/b",
    "/files//../files/b%3F",
    "/zz/%2F../files/b%3F",
    "/zz%2F%2F../files/b%3F",
    "/zz//..%2Ffiles/b%3Fa",
    "/zz//../files/b%20",
    "/zz//../files/b%01",
  ])("sells %s, which does so once it is decoded and normalised", async (target) => {
    const decoded = ({ path }: Request) => decodeURIComponent(path);
    for (const pathOf of [
      (request: Request) => posix.normalize(decoded(request)),
      (request: Request) => decoded(request).replace(/\/+/g, "/"),
      ({ path }: Request) => decodeURIComponent(posix.normalize(path)),
    ]) {
      const shop = await openFetching(pathOf);
      const { status, answer } = await sendTarget(shop, target);
      expect(answer).not.toContain(content);
      expect(status).toBe(402);
    }
  });

  it.each([
    ["/api/../files/b", ({ url }: Request) => url],
    ["/API/x/../../files/b", ({ url }: Request) => url],
    ["/api/%2e%2e/%2E./files/b", ({ url }: Request) => url],
    ["//api//..//../files/b", ({ url }: Request) => url],
    ["/api/..%2ffiles/b", ({ path }: Request) => decodeURIComponent(path)],
    ["/api/x%2f%252e%252e%2f..%2ffiles%2Fb", ({ path }: Request) => decodeURIComponent(path)],
    ["/api/x%2fy%2fz/./../../files/b", ({ url }: Request) => url],
    ["/api/.%09./files/b", ({ path }: Request) => decodeURIComponent(path)],
    ["/api/x%2f.%0a%2f../%0d../files/b", ({ path }: Request) => decodeURIComponent(path)],
  ] as const)("sells %s, whose dots end at the handler's mount", async (target, pathOf) => {
    const files = await openFiles();
    const shop = await openShop({
      express,
      routes: { "GET /api/files/b": { accepts: option() } },
      serve: (app) =>
        app.use("/api", async (request, response) => {
          response.send(await (await fetch(files.url + pathOf(request))).text());
        }),
    });
    open(shop);
    const { answer, status } = await sendTarget(shop, target);
    expect(answer).not.toContain(content);
    expect(status).toBe(402);
  });

  it("sells no file at the price of another one, as which it may be read", async () => {
    const files = await openFiles();
    const shop = await openShop({
      express,
      routes: {
        "GET /files/a": { accepts: option({ price: "$0.001" }) },
        "GET /files/:name": { accepts: option({ price: "$5" }) },
        "GET /files/:folder/:name": { accepts: option({ price: "$6" }) },
      },
      serve: (app) =>
        app.use(async (request, response) => {
          response.send(await (await fetch(files.url + request.originalUrl)).text());
        }),
    });
    open(shop);
    for (const target of [
      "/files/a%3f/../b",
      "/files/a%23/.%2e/b",
      "/files/x/../a%3f/../b",
      "/zz/../files/b",
      "/files/a%2Fb",
      "/files/b%20",
    ]) {
      const { answer } = await sendTarget(shop, target);
      expect([target, answer]).toEqual([target, expect.stringMatching(/"[56]000000"/)]);
    }
  });

  it("sells escaped parameters by Express's own reading, whichever keys stand beside", async () => {
    const at = (price: `$${number}`) => ({ accepts: option({ price }) });
    const shop = await openShop({
      express,
      routes: {
        "GET /fetch/:url": at("$1"),
        "GET /topics/:topic": at("$2"),
        "GET /topics/:topic/notes": at("$3"),
        "GET /files/sale": at("$8"),
        // Express 4 reads these in its own way.
        ...(name === "Express 5" && { "GET /files/:name.pdf": at("$6") }),
        "GET /files/:name": at("$5"),
        ...(name === "Express 5" && { "GET /*rest": at("$7") }),
      },
      serve: (app) => {
        for (const path of ["/fetch/:url", "/topics/:topic", "/topics/:topic/notes"]) {
          app.get(path, (_request, response) => void response.send(content));
        }
      },
    });
    open(shop);
    for (const [target, price] of [
      ["/fetch/https%3A%2F%2Fexample.com%2Fa", '"1000000"'],
      ["/fetch/https%3A%2F%2Fexample.com%2Fa%3Fb%3Dc", '"1000000"'],
      ["/topics/C%23", '"2000000"'],
      ["/topics/C%23/notes", '"3000000"'],
      ["/files/What%3F.pdf", name === "Express 5" ? '"6000000"' : '"5000000"'],
      ["/files/What%20", '"5000000"'],
      // A handler of /files/:name may fetch what the dearer key sells.
      ["/files/sale%3Fx", '"8000000"'],
      ["/files/sale%23/", '"8000000"'],
    ] as const) {
      expect([target, (await sendTarget(shop, target)).answer]).toEqual([
        target,
        expect.stringContaining(price),
      ]);
    }
  });

  it("refuses more than three segments of two dots", async () => {
    const shop = await openFetching(({ originalUrl }) => originalUrl);
    expect((await sendTarget(shop, `/x${"/..".repeat(4)}/y`)).status).toBe(400);
    expect((await sendTarget(shop, `/x${"/%252e%2e".repeat(4)}/y`)).status).toBe(400);
    expect((await sendTarget(shop, `/x${"/..".repeat(3)}/files/b`)).status).toBe(402);
  });

  it("refuses a path of more than 500 characters with one", async () => {
    const shop = await openFetching(({ originalUrl }) => originalUrl);
    for (const path of ["/x/../", "/x/%252e./"]) {
      expect((await sendTarget(shop, path.padEnd(501, "a"))).status).toBe(400);
      expect((await sendTarget(shop, path.padEnd(500, "a"))).status).toBe(200);
    }
  });

  it("sells a path whose escapes are no UTF-8 altogether", async () => {
    const upstream = await openBytes();
    const shop = await openShop({
      express,
      routes: { "GET /files/:name": { accepts: option() } },
      serve: (app) =>
        app.use((request, response) => {
          httpRequest(upstream + request.url, (sent) => void sent.pipe(response)).end();
        }),
    });
    open(shop);
    for (const target of ["/files%2f%ff", "/%66%69les%2F%ffb"]) {
      const { answer, status } = await sendTarget(shop, target);
      expect(answer).not.toContain(content);
      expect([400, 402]).toContain(status);
    }
  });
});
