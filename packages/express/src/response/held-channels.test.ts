import { get, type IncomingMessage, type OutgoingMessage, Server, ServerResponse } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import type { Listening } from "@coinslot/devnet";
import type { RequestHandler, Response } from "express";
import { afterEach, describe, expect, it } from "vitest";
import { createBuyer } from "../testing/buyer.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

/** All bytes that a connection brings until it ends. */
function receiveBytes(shop: Shop, headers: Record<string, string>): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(shop.port, "127.0.0.1");
    let bytes = "";
    socket.setEncoding("latin1").on("data", (text) => {
      bytes += text;
    });
    socket.once("close", () => resolve(bytes)).once("error", reject);
    const lines = Object.entries({ Host: "shop", Connection: "close", ...headers });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    socket.write(`GET /answer HTTP/1.1\r\n${head}\r\n`);
  });
}

const secret = "the secret that is sold";

/** Calls a method of a response that its types do not show. */
function call(response: Response, name: string, ...args: unknown[]): unknown {
  return Reflect.apply(Reflect.get(response, name), response, args);
}

function callPrototype(response: Response, name: string, ...args: unknown[]): unknown {
  return Reflect.apply(Reflect.get(ServerResponse.prototype, name), response, args);
}

/** Ways to a response's connection that bypass its methods. */
const waysPast: [title: string, handler: (response: Response) => unknown][] = [
  ["ServerResponse.prototype.write", (response) => callPrototype(response, "write", secret)],
  ["ServerResponse.prototype.end", (response) => callPrototype(response, "end", secret)],
  [
    "ServerResponse.prototype.end without a body",
    (response) => {
      response.setHeader("X-Secret", secret);
      return callPrototype(response, "end");
    },
  ],
  [
    "ServerResponse.prototype.writeHead and flushHeaders",
    (response) => {
      callPrototype(response, "writeHead", 200, { "X-Secret": secret });
      return callPrototype(response, "flushHeaders");
    },
  ],
  [
    "ServerResponse.prototype.writeEarlyHints",
    (response) => callPrototype(response, "writeEarlyHints", { link: `<${secret}>` }),
  ],
  [
    "a pipe into the prototype's methods",
    (response) => {
      for (const name of ["write", "end"] as const) {
        const method: unknown = Reflect.get(ServerResponse.prototype, name);
        Object.defineProperty(response, name, { value: method, configurable: true });
      }
      Readable.from([secret]).pipe(response);
    },
  ],
  ["_send", (response) => call(response, "_send", secret, "latin1")],
  ["_writeRaw", (response) => call(response, "_writeRaw", secret, "latin1")],
];

describe.each(expressVersions)("a held answer on $name", ({ express }) => {
  async function open(handler: RequestHandler) {
    const shop = await openShop({
      express,
      routes: { "GET /answer": { accepts: option() } },
      serve(app) {
        app.set("env", "test");
        app.get("/answer", handler);
      },
    });
    opened.push(shop);
    const { headers } = await createBuyer().payFor(`${shop.url}/answer`);
    return { shop, headers };
  }

  it.each(waysPast)("sends nothing by %s before the settlement", async (_case, handler) => {
    const order: string[] = [];
    const { shop, headers } = await open((_request, response, next) => {
      try {
        handler(response);
      } catch (error) {
        order.push("threw");
        next(error);
      }
    });
    shop.facilitator.onSettle = async () => {
      order.push("settled");
      throw new Error("no money");
    };
    const bytes = await receiveBytes(shop, headers);
    expect(bytes).not.toContain(secret);
    expect(bytes).toMatch(/^HTTP\/1\.1 50\d /);
    expect(shop.facilitator.settled).toEqual([]);
    expect(order).not.toContain("settled");
  });

  it("lets the informational answers 100 and 102 pass", async () => {
    const { shop, headers } = await open((_request, response) => {
      response.writeContinue();
      response.writeProcessing();
      response.send(secret);
    });
    const bytes = await receiveBytes(shop, headers);
    expect(bytes).toMatch(
      /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 102 Processing\r\n\r\nHTTP\/1\.1 200 OK/,
    );
    expect(bytes).toContain(secret);
  });

  it("is sent when the server stops meanwhile", async () => {
    let server: unknown;
    const { shop, headers } = await open((request, response) => {
      server = Reflect.get(request.socket, "server");
      response.send(secret);
    });
    shop.facilitator.onSettle = async (settle) => {
      if (server instanceof Server) server.close();
      // The connection would be destroyed at once, and its end seen with the next turns of the
      // event loop.
      await new Promise((resolve) => setImmediate(resolve));
      return settle();
    };
    expect(await receiveBytes(shop, headers)).toContain(secret);
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it("reports its end to the handler", async () => {
    const seen: Record<string, unknown>[] = [];
    const look = (response: OutgoingMessage) => {
      const { writableEnded, writableFinished, headersSent } = response;
      seen.push({
        writableEnded,
        writableFinished,
        headersSent,
        finished: Reflect.get(response, "finished"),
      });
    };
    const { shop, headers } = await open((_request, response) => {
      look(response);
      response.write(secret);
      look(response);
      response.end();
      look(response);
      response.once("finish", () => look(response));
    });
    const answer = await new Promise<IncomingMessage>((resolve) => {
      get(`${shop.url}/answer`, { headers, agent: false }, resolve);
    });
    answer.resume();
    expect(answer.statusCode).toBe(200);
    const before = {
      writableEnded: false,
      writableFinished: false,
      headersSent: false,
      finished: false,
    };
    expect(seen).toEqual([
      before,
      before,
      // Node's server relies on `finished`.
      { ...before, writableEnded: true },
      { writableEnded: true, writableFinished: true, headersSent: true, finished: true },
    ]);
  });

  it.each([
    ["the method that it covers", (end: () => void) => end()],
    ["the method of the response", (_end: () => void, again: () => void) => again()],
  ])(
    "drops a late handler's writes while outer middleware waits and then ends it by %s",
    async (_case, endIt) => {
      let late: (() => void) | undefined;
      const shop = await openShop({
        express,
        routes: { "GET /answer": { accepts: option(), handlerTimeoutSeconds: 0.05 } },
        before(app) {
          app.use((_request, response, next) => {
            const { end } = response;
            let isDue = false;
            response.end = (...written: unknown[]) => {
              const finish = () => Reflect.apply(end, response, written);
              if (isDue) return finish();
              isDue = true;
              setImmediate(() => {
                late?.();
                endIt(finish, () => Reflect.apply(response.end, response, written));
              });
              return response;
            };
            next();
          });
        },
        serve(app) {
          app.get("/answer", (_request, response) => {
            late = () => {
              response.setHeader("X-Late", secret);
              response.status(302).location(`/${secret}`);
              response.write(secret);
              response.writeHead(200, { "X-Later": secret });
            };
          });
        },
      });
      opened.push(shop);
      const { headers } = await createBuyer().payFor(`${shop.url}/answer`);
      const bytes = await receiveBytes(shop, headers);
      expect(bytes).toMatch(/^HTTP\/1\.1 504 /);
      expect(bytes).toContain("handler_timeout");
      expect(bytes).not.toContain(secret);
    },
  );

  it("is sent when it replaces an ended one", async () => {
    const { shop, headers } = await open((_request, response) => void response.end(secret));
    shop.facilitator.onSettle = async () => {
      throw new Error("away");
    };
    const bytes = await receiveBytes(shop, headers);
    expect(bytes).toMatch(/^HTTP\/1\.1 503 /);
    expect(bytes).not.toContain(secret);
  });
});
