import { once } from "node:events";
import { createServer, type IncomingMessage, request as startRequest } from "node:http";
import { type Listening, listen } from "@coinslot/devnet";
import { headerName } from "@coinslot/protocol";
import express, { type RequestHandler } from "express";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { paymentMiddleware } from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { openShop, option } from "../testing/shop.ts";

const opened: Pick<Listening, "close">[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

function keep<T extends Pick<Listening, "close">>(listening: T): T {
  opened.push(listening);
  return listening;
}

/** Forwards a request like a proxy, with the proxy's headers. */
function forwardTo(port: number, headersOf: (request: IncomingMessage) => object): RequestHandler {
  return (request, response) => {
    const headers = { ...headersOf(request), host: "upstream" };
    const { method, url: path } = request;
    const upstream = startRequest({ port, host: "127.0.0.1", method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    request.pipe(upstream);
  };
}

function pairs({ rawHeaders }: IncomingMessage): Record<string, string[]> {
  const headers: Record<string, string[]> = {};
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? "").toLowerCase();
    headers[name] = [...(headers[name] ?? []), rawHeaders[index + 1] ?? ""];
  }
  return headers;
}

describe.each(expressVersions)("a proxy behind the gate on $name", ({ express: version }) => {
  describe.each([
    ["headers", (request: IncomingMessage) => request.headers],
    ["headersDistinct", (request: IncomingMessage) => request.headersDistinct],
    ["rawHeaders", pairs],
  ] as const)("that passes on request.%s", (_name, headersOf) => {
    it.each([
      [1, "authorization"],
      [2, "authorization"],
      [1, "upfront"],
      [2, "upfront"],
    ] as const)(
      "passes no payment of version %i to the upstream, %s",
      async (x402, paymentFlow) => {
        const arrived: IncomingMessage["headers"][] = [];
        const upstream = keep(
          await listen((request, response) => {
            arrived.push(request.headers);
            response.end("bought");
          }),
        );
        const shop = keep(
          await openShop({
            express: version,
            routes: { "/x": { accepts: option(), paymentFlow } },
            serve: (app) => void app.use(forwardTo(upstream.port, headersOf)),
          }),
        );
        const { headers } = await createBuyer().payFor(`${shop.url}/x`, { version: x402 });
        const sent = {
          ...headers,
          "Idempotency-Key": "a key of the buyer's own",
          "X-Other": "stays",
        };
        await supertest(shop.url)
          .post("/x")
          .set(sent)
          .type("text")
          .send("order")
          .expect(200, "bought");
        expect(arrived).toHaveLength(1);
        expect(arrived[0]).toMatchObject({
          "x-other": "stays",
          "idempotency-key": sent["Idempotency-Key"],
        });
        expect(Object.keys(arrived[0] ?? {})).not.toContain(headerName.payment.toLowerCase());
        expect(Object.keys(arrived[0] ?? {})).not.toContain(
          headerName.paymentSignature.toLowerCase(),
        );
      },
    );
  });
});

describe("a request to upgrade a connection", () => {
  const routes = { "GET /feed": { accepts: option() } };

  /** The answer to an upgrade request, and whether the application received it. */
  async function upgrade(onUpgrade: boolean): Promise<{ status: number; visits: number }> {
    const app = express();
    let visits = 0;
    app.use((_request, _response, next) => {
      visits += 1;
      next();
    });
    const gate = paymentMiddleware(routes, createPaperFacilitator());
    app.use(gate);
    await gate.ready();
    const server = createServer(app);
    if (onUpgrade) {
      server.on("upgrade", (_request, socket) => {
        socket.end(
          "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: feed\r\n\r\n",
        );
      });
    }
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    keep({
      close: async () => {
        server.closeAllConnections();
        server.close();
      },
    });
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const headers = { Connection: "Upgrade", Upgrade: "feed" };
    const sent = startRequest({ host: "127.0.0.1", port, path: "/feed", headers }).end();
    const status = await new Promise<number>((resolve, reject) => {
      sent.once("response", (answer) => resolve(answer.resume().statusCode ?? 0));
      sent.once("upgrade", (answer) => resolve(answer.statusCode ?? 0));
      sent.once("error", reject);
    });
    return { status, visits };
  }

  it("meets the gate on a server without an upgrade listener", async () => {
    expect(await upgrade(false)).toEqual({ status: 402, visits: 1 });
  });

  it("bypasses the application on a server with an upgrade listener", async () => {
    expect(await upgrade(true)).toEqual({ status: 101, visits: 0 });
  });
});

describe.each(expressVersions)(
  "a framework on $name that serves a page's content at further paths",
  ({ express: version }) => {
    /**
     * As Next.js: the page, its data for navigation in the browser, and files through its image
     * optimizer.
     */
    const framework: RequestHandler = (request, response) => {
      const { pathname, searchParams } = new URL(request.url, "http://localhost");
      const isData = /^\/_next\/data\/[^/]+\/report\.json$/.test(pathname);
      const isImage = pathname === "/_next/image" && searchParams.get("url") === "/report";
      response.send(isData || isImage || pathname === "/report" ? "content" : "free");
    };

    const page = "/report";
    const others = ["/_next/data/b1/report.json", "/_next/image?url=%2Freport&w=64&q=75"];

    it("sells them where they are listed, and no others", async () => {
      const accepts = option();
      const keys = [page, "/_next/data/:build/report.json", "/_next/image"];
      const routes = Object.fromEntries(keys.map((key) => [key, { accepts }]));
      const shop = keep(
        await openShop({ express: version, routes, serve: (app) => void app.use(framework) }),
      );
      for (const path of [page, ...others]) {
        await supertest(shop.url).get(path).expect(402);
        const { headers } = await createBuyer().payFor(shop.url + path);
        await supertest(shop.url).get(path).set(headers).expect(200, "content");
      }
      await supertest(shop.url).get("/_next/static/chunk.js").expect(200, "free");
    });

    it("serves them for free where only the page is listed", async () => {
      const routes = { [page]: { accepts: option() } };
      const shop = keep(
        await openShop({ express: version, routes, serve: (app) => void app.use(framework) }),
      );
      await supertest(shop.url).get(page).expect(402);
      for (const path of others) await supertest(shop.url).get(path).expect(200, "content");
    });
  },
);
