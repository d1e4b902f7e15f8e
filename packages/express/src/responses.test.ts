import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { get, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { headerName } from "@coinslot/protocol";
import compression from "compression";
import type { Express, RequestHandler } from "express";
import session from "express-session";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createBuyer } from "./testing/buyer.ts";
import { expressVersions } from "./testing/express-versions.ts";
import { type Listening, listen } from "./testing/listen.ts";
import { openShop, option, type Shop } from "./testing/shop.ts";

const text = "The quick brown fox jumps over the lazy dog. ".repeat(400);
const opened: Listening[] = [];
let folder = "";
let file = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "responses-"));
  file = join(folder, "report.txt");
  await writeFile(file, text);
});

afterAll(() => rm(folder, { recursive: true }));

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

/** An answer as it came over the wire. */
interface Received {
  status: number;
  statusMessage: string;
  headers: Record<string, unknown>;
  trailers: Record<string, unknown>;
  body: string;
}

function receive(
  url: string,
  options: { method?: string; headers?: Record<string, string> } = {},
): Promise<Received> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false, ...options }, (response: IncomingMessage) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          statusMessage: response.statusMessage ?? "",
          headers: { ...response.headers },
          trailers: { ...response.trailers },
          body: Buffer.concat(chunks).toString("latin1"),
        }),
      );
    });
    request.on("error", reject);
  });
}

/** What may differ between a sold answer and a free one. */
const ours = new Set([
  headerName.paymentResponse.toLowerCase(),
  "cache-control",
  "date",
  // A held answer is complete, so that its length is known where it was sent in chunks.
  "content-length",
  "transfer-encoding",
  "set-cookie",
]);

function comparable({ headers, ...answer }: Received): unknown {
  const kept = Object.entries(headers).filter(([name]) => !ours.has(name));
  return { ...answer, headers: Object.fromEntries(kept) };
}

const handlers: [what: string, handler: RequestHandler, headers?: Record<string, string>][] = [
  ["json", (_request, response) => void response.json({ a: [1, "é"] })],
  ["send of text", (_request, response) => void response.send(text)],
  ["send of bytes", (_request, response) => void response.send(Buffer.from([0, 255, 10]))],
  ["a status and its words", (_request, response) => void response.sendStatus(201)],
  ["a redirect", (_request, response) => void response.redirect(303, "/elsewhere")],
  ["204", (_request, response) => void response.status(204).end()],
  ["304", (_request, response) => void response.send(text), { "If-None-Match": "*" }],
  ["sendFile", (_request, response) => response.sendFile(file)],
  ["download", (_request, response) => response.download(file, "answer.txt")],
  ["a range", (_request, response) => response.sendFile(file), { Range: "bytes=4-8" }],
  [
    "several headers of one name",
    (_request, response) => void response.append("Link", "<a>").append("Link", "<b>").send("x"),
  ],
  [
    "a vary and a type",
    (_request, response) => void response.vary("Accept").type("html").send("<p>"),
  ],
  [
    "writeHead with an object",
    (_request, response) =>
      void response.writeHead(202, { "X-A": "1", "X-B": ["2", "3"] }).end("x"),
  ],
  [
    "writeHead with words and an object",
    (_request, response) => void response.writeHead(202, "Good", { "X-A": "1" }).end("x"),
  ],
  [
    "writeHead with a flat list",
    (_request, response) => void response.writeHead(202, ["X-A", "1", "X-B", "2"]).end("x"),
  ],
  [
    "writeHead over what was set",
    (_request, response) => {
      response.setHeader("X-A", "old");
      response.setHeader("X-Kept", "yes");
      response.writeHead(200, { "X-A": "new" });
      response.end("x");
    },
  ],
  [
    "flushHeaders first",
    (_request, response) => {
      response.setHeader("X-A", "1");
      response.flushHeaders();
      response.end("later");
    },
  ],
  [
    "writes in encodings",
    (_request, response) => {
      response.write("68656c6c6f", "hex");
      response.write("IHdvcmxk", "base64");
      response.write(new Uint8Array([33]));
      response.write("é", "latin1");
      response.end("é", "utf8");
    },
  ],
  [
    "writes that wait for their callbacks",
    (_request, response) => {
      response.write("a", () =>
        response.write("b", "utf8", () => response.end("c", () => undefined)),
      );
    },
  ],
  [
    "end with nothing but a callback",
    (_request, response) => {
      response.end(() => undefined);
    },
  ],
  [
    "a pipe",
    (_request, response) =>
      void Readable.from(Array.from({ length: 50 }, () => text)).pipe(response),
  ],
  [
    "a pipeline that is awaited",
    async (_request, response) => {
      await pipeline(Readable.from([text, text]), response);
    },
  ],
  [
    "trailers",
    (_request, response) => {
      response.writeHead(200, { Trailer: "X-Sum" });
      response.write("body");
      response.addTrailers({ "X-Sum": "7" });
      response.end();
    },
  ],
  [
    "hints before it",
    (_request, response) => {
      response.writeProcessing();
      response.writeEarlyHints({ link: "</style.css>; rel=preload" }, () => response.send("x"));
    },
  ],
  [
    "a content length of its own",
    (_request, response) => {
      response.setHeader("Content-Length", 5);
      response.write("he");
      response.end("llo");
    },
  ],
  [
    "a late answer",
    (_request, response) => {
      setTimeout(() => response.json({ late: true }), 20);
    },
  ],
];

describe.each(expressVersions)("a sold answer on $name is the free one", ({ express }) => {
  async function open(
    handler: RequestHandler,
    around: { before?: (app: Express) => void; after?: (app: Express) => void } = {},
  ) {
    const serve = (app: Express) => {
      around.after?.(app);
      app.get("/answer", handler);
    };
    const shop = await openShop({
      express,
      routes: { "GET /answer": { accepts: option() } },
      before: around.before,
      serve,
    });
    const app = express();
    around.before?.(app);
    serve(app);
    const free = await listen(app);
    opened.push(shop, free);
    return { shop, free };
  }

  async function receiveSold(shop: Shop, init: Parameters<typeof receive>[1] = {}) {
    const { headers } = await createBuyer().payFor(`${shop.url}/answer`);
    return receive(`${shop.url}/answer`, { ...init, headers: { ...init.headers, ...headers } });
  }

  it.each(handlers)("with %s", async (_what, handler, headers = {}) => {
    const { shop, free } = await open(handler);
    const sold = await receiveSold(shop, { headers });
    const given = await receive(`${free.url}/answer`, { headers });
    expect(comparable(sold)).toEqual(comparable(given));
    expect(sold.headers["cache-control"]).toMatch(/^private/);
    expect(sold.headers["payment-response"]).toBeTypeOf("string");
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  // Node itself throws when HEAD is answered with trailers.
  const answersToHead = handlers.filter(([what]) => what !== "trailers");

  it.each(answersToHead)("with %s, to HEAD", async (_what, handler, headers = {}) => {
    const { shop, free } = await open(handler);
    const sold = await receiveSold(shop, { method: "HEAD", headers });
    const given = await receive(`${free.url}/answer`, { method: "HEAD", headers });
    expect(comparable(sold)).toEqual(comparable(given));
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it("without the trailers that HEAD cannot have", async () => {
    const { shop } = await open((_request, response) => {
      response.setHeader("Trailer", "X-Sum");
      response.write("body");
      response.addTrailers({ "X-Sum": "7" });
      response.end();
    });
    expect(await receiveSold(shop, { method: "HEAD" })).toMatchObject({ status: 200, body: "" });
  });

  it.each([
    ["before", { before: (app: Express) => app.use(compression({ threshold: 0 })) }],
    ["after", { after: (app: Express) => app.use(compression({ threshold: 0 })) }],
  ])("with compression %s the gate", async (_where, around) => {
    for (const [, handler] of handlers.slice(0, 2)) {
      const { shop, free } = await open(handler, around);
      const headers = { "Accept-Encoding": "gzip" };
      const sold = await receiveSold(shop, { headers });
      const given = await receive(`${free.url}/answer`, { headers });
      expect(sold.headers["content-encoding"]).toBe("gzip");
      expect(comparable(sold)).toEqual(comparable(given));
    }
  });

  it.each(["before", "after"] as const)("with a session %s the gate", async (where) => {
    const use = (app: Express) =>
      app.use(session({ secret: "s", resave: false, saveUninitialized: true }));
    const { shop } = await open(
      (request, response) => {
        Object.assign(request.session, { seen: true });
        response.send("hello");
      },
      { [where]: use },
    );
    const sold = await receiveSold(shop);
    expect(sold).toMatchObject({ status: 200, body: "hello" });
    expect(String(sold.headers["set-cookie"])).toContain("connect.sid");
  });

  it("and 'finish' comes when it has gone out", async () => {
    const order: string[] = [];
    const { shop } = await open((_request, response) => {
      response.on("finish", () => order.push("finish"));
      response.end("x", () => order.push("callback"));
      order.push(`ended, ${response.headersSent ? "sent" : "held"}`);
    });
    shop.facilitator.onSettle = async (settle) => {
      order.push("settled");
      return settle();
    };
    await receiveSold(shop);
    expect(order[0]).toBe("ended, held");
    expect(order[1]).toBe("settled");
    expect(order.slice(2).sort()).toEqual(["callback", "finish"]);
  });

  it.each([
    ["public, max-age=60, s-maxage=600", "private, max-age=60"],
    ["no-store", "private, no-store"],
    ["private, max-age=5", "private, max-age=5"],
  ])("but that shared caches are kept out of it: %s", async (set, expected) => {
    const { shop } = await open((_request, response) => {
      response.set("Cache-Control", set).send("x");
    });
    expect((await receiveSold(shop)).headers["cache-control"]).toBe(expected);
  });
});

describe.each(expressVersions)("a handler on $name that does not answer well", ({ express }) => {
  async function open(
    handler: RequestHandler,
    config: { timeout?: number; after?: (app: Express) => void } = {},
  ) {
    const shop = await openShop({
      express,
      routes: {
        "GET /answer": { accepts: option(), handlerTimeoutSeconds: config.timeout ?? 10 },
      },
      options: { maxResponseBytes: 100_000 },
      serve(app) {
        // The words of an error are the application's, not its stack.
        app.set("env", "test");
        app.get("/answer", handler);
        config.after?.(app);
      },
    });
    opened.push(shop);
    return shop;
  }

  async function payTwice(shop: Shop): Promise<[Response, Response]> {
    const { headers } = await createBuyer().payFor(`${shop.url}/answer`);
    const first = await fetch(`${shop.url}/answer`, { headers });
    return [first, await fetch(`${shop.url}/answer`, { headers })];
  }

  it.each([400, 404, 500, 503])(
    "with status %i is not charged, and the same payment may try again",
    async (status) => {
      let tries = 0;
      const shop = await open((_request, response) => {
        tries += 1;
        if (tries === 1) response.status(status).json({ sorry: true });
        else response.json({ tries });
      });
      const [first, second] = await payTwice(shop);
      expect(first.status).toBe(status);
      expect(await first.json()).toEqual({ sorry: true });
      expect(first.headers.has(headerName.paymentResponse)).toBe(false);
      expect(await second.json()).toEqual({ tries: 2 });
      expect(shop.facilitator.settled).toHaveLength(1);
    },
  );

  const failures: [string, RequestHandler][] = [
    [
      "throws",
      () => {
        throw new Error("broken");
      },
    ],
    ["hands on an error", (_request, _response, next) => next(new Error("broken"))],
    [
      "throws after it has begun to write",
      (_request, response) => {
        response.writeHead(200, { "Content-Type": "text/plain" });
        response.write("half of a sec");
        throw new Error("broken");
      },
    ],
    ["finds no route", (_request, _response, next) => next("route")],
  ];

  it.each(failures)("because it %s is not charged", async (what, handler) => {
    const shop = await open(handler);
    const [first] = await payTwice(shop);
    expect(first.status).toBe(what === "finds no route" ? 404 : 500);
    expect(await first.text()).not.toContain("half");
    expect(shop.facilitator.settled).toHaveLength(0);
  });

  it("because it throws is answered for by the application's own error handler", async () => {
    const shop = await open(
      (_request, response) => {
        response.write("half of a sec");
        throw new Error("broken");
      },
      {
        after(app) {
          const handleError: import("express").ErrorRequestHandler = (
            _error,
            _request,
            response,
            next,
          ) => {
            if (response.headersSent) next(_error);
            else response.status(418).json({ error: "ours" });
          };
          app.use(handleError);
        },
      },
    );
    const [first] = await payTwice(shop);
    expect(first.status).toBe(418);
    expect(await first.json()).toEqual({ error: "ours" });
    expect(shop.facilitator.settled).toHaveLength(0);
  });

  it("in time is answered for with 504 and not charged; what it does later reaches nobody", async () => {
    let late: () => void = () => undefined;
    const isOver = new Promise<void>((resolve) => {
      late = resolve;
    });
    let lateFault: unknown;
    const shop = await open(
      async (_request, response) => {
        await isOver;
        try {
          response.setHeader("X-Late", "1");
          response.status(200).json({ secret: true });
        } catch (error) {
          lateFault = error;
        }
      },
      { timeout: 0.05 },
    );
    const { headers } = await createBuyer().payFor(`${shop.url}/answer`);
    const answer = await fetch(`${shop.url}/answer`, { headers });
    expect(answer.status).toBe(504);
    expect(await answer.json()).toMatchObject({ error: "handler_timeout" });
    late();
    await isOver;
    const again = fetch(`${shop.url}/answer`, { headers });
    expect((await again).status).toBe(200);
    expect(lateFault).toBeUndefined();
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it("within the bound is not charged, and told so", async () => {
    const shop = await open((_request, response) => {
      Readable.from(Array.from({ length: 100 }, () => text)).pipe(response);
    });
    const [first] = await payTwice(shop);
    expect(first.status).toBe(500);
    expect(await first.json()).toMatchObject({ error: "response_too_large" });
    expect(shop.facilitator.settled).toHaveLength(0);
  });

  it("because its source fails is not charged", async () => {
    const shop = await open(async (_request, response) => {
      const source = new Readable({
        read() {
          this.push("half");
          this.destroy(new Error("broken"));
        },
      });
      await pipeline(source, response).catch(() => undefined);
    });
    const { headers } = await createBuyer().payFor(`${shop.url}/answer`);
    await expect(fetch(`${shop.url}/answer`, { headers })).rejects.toThrow();
    expect(shop.facilitator.settled).toHaveLength(0);
  });

  it("once but twice is charged for the first answer", async () => {
    const shop = await open((_request, response) => {
      response.json({ first: true });
      try {
        response.status(500).json({ second: true });
      } catch {
        // As without the gate, where the second answer throws.
      }
    });
    const [first] = await payTwice(shop);
    expect(first.status).toBe(200);
    expect(await first.json()).toEqual({ first: true });
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it("for a status that does not exist is not charged", async () => {
    const shop = await open((_request, response) => {
      response.writeHead(42).end("x");
    });
    const [first] = await payTwice(shop);
    expect(first.status).toBe(500);
    expect(shop.facilitator.settled).toHaveLength(0);
  });
});

describe("a handler on Express 5 that rejects", () => {
  it("is not charged", async () => {
    const shop = await openShop({
      routes: { "GET /answer": { accepts: option() } },
      serve(app) {
        app.set("env", "test");
        app.get("/answer", async () => {
          throw new Error("broken");
        });
      },
    });
    opened.push(shop);
    const { headers } = await createBuyer().payFor(`${shop.url}/answer`);
    expect((await fetch(`${shop.url}/answer`, { headers })).status).toBe(500);
    expect(shop.facilitator.settled).toHaveLength(0);
  });
});
