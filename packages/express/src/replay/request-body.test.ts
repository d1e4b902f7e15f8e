import { createHash } from "node:crypto";
import { connect } from "node:net";
import { headerName } from "@coinslot/protocol";
import type { Express, Request } from "express";
import { afterEach, describe, expect, it } from "vitest";
import { createBuyer } from "../testing/buyer.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";

const opened: Shop[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

function readAll(request: Request): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => resolve(Buffer.concat(chunks)));
    request.on("error", reject);
  });
}

describe.each(expressVersions)("the body of a paid request on $name", ({ express }) => {
  async function open(config: {
    before?: (app: Express) => void;
    after?: (app: Express) => void;
    handle: (request: Request) => unknown;
    maxRequestBytes?: number;
  }): Promise<Shop> {
    const shop = await openShop({
      express,
      routes: { "POST /echo": { accepts: option() } },
      before: config.before,
      options: { maxRequestBytes: config.maxRequestBytes ?? 2 ** 20 },
      serve(app) {
        config.after?.(app);
        app.post("/echo", (request, response, next) => {
          Promise.resolve(config.handle(request)).then((value) => response.json(value), next);
        });
      },
    });
    opened.push(shop);
    return shop;
  }

  async function send(shop: Shop, init: RequestInit & { duplex?: "half" }, headers = {}) {
    const payment = await createBuyer().payFor(`${shop.url}/echo`, { init: { method: "POST" } });
    const all = { ...payment.headers, ...headers };
    return fetch(`${shop.url}/echo`, { method: "POST", ...init, headers: all });
  }

  const json = { "Content-Type": "application/json" };
  const handleBody = (request: Request): unknown => request.body;

  it("reaches a body parser that runs after the gate", async () => {
    const shop = await open({ after: (app) => app.use(express.json()), handle: handleBody });
    const answer = await send(shop, { body: '{"a":1}' }, json);
    expect(await answer.json()).toEqual({ a: 1 });
  });

  it("is read when a body parser runs before the gate", async () => {
    const shop = await open({ before: (app) => app.use(express.json()), handle: handleBody });
    const answer = await send(shop, { body: '{"a":1}' }, json);
    expect(await answer.json()).toEqual({ a: 1 });
  });

  it.each([1, 1000, 100_000, 900_000])(
    "reaches a handler that reads the stream with %i bytes in chunks",
    async (size) => {
      const bytes = Buffer.alloc(size, "abcdefg");
      const shop = await open({
        handle: async (request) => {
          const read = await readAll(request);
          return { hash: createHash("sha256").update(read).digest("hex"), size: read.length };
        },
      });
      const stream = new ReadableStream({
        start(controller) {
          for (let at = 0; at < size; at += 10_000) {
            controller.enqueue(bytes.subarray(at, at + 10_000));
          }
          controller.close();
        },
      });
      const answer = await send(shop, { body: stream, duplex: "half" });
      const hash = createHash("sha256").update(bytes).digest("hex");
      expect(await answer.json()).toEqual({ hash, size });
    },
  );

  it("reaches a handler that paused it, and reads it after its answer", async () => {
    const sizes: number[] = [];
    const shop = await open({
      handle(request) {
        request.pause();
        request.res?.once("finish", () =>
          setImmediate(() => {
            void readAll(request).then(({ length }) => sizes.push(length));
            request.resume();
          }),
        );
        return "served";
      },
    });
    const answer = await send(shop, { body: Buffer.alloc(100_000, "x") });
    expect(await answer.json()).toBe("served");
    await expect.poll(() => sizes, { interval: 10, timeout: 20_000 }).toEqual([100_000]);
  });

  it("delays no answer when it is empty but chunked", async () => {
    const shop = await open({ after: (app) => app.use(express.json()), handle: () => "served" });
    const stream = new ReadableStream({ start: (controller) => controller.close() });
    const answer = await send(shop, { body: stream, duplex: "half" }, json);
    expect(await answer.json()).toBe("served");
  });

  /** Sends a paid head, and its body at once or after the server's `100 Continue`. */
  async function sendByHand(
    shop: Shop,
    { fields, body, waits }: { fields: string[]; body: string; waits: boolean },
  ): Promise<string> {
    const { headers } = await createBuyer().payFor(`${shop.url}/echo`, {
      init: { method: "POST" },
    });
    const lines = [
      "POST /echo HTTP/1.1",
      "Host: shop",
      "Connection: close",
      ...fields,
      ...(waits ? ["Expect: 100-continue"] : []),
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ];
    return new Promise<string>((resolve, reject) => {
      const socket = connect(shop.port, "127.0.0.1");
      let text = "";
      socket.on("data", (chunk) => {
        const before = text;
        text += chunk.toString();
        if (!before.includes("100 Continue") && text.includes("100 Continue")) socket.write(body);
      });
      socket.on("close", () => resolve(text));
      socket.on("error", reject);
      socket.write(`${lines.join("\r\n")}\r\n\r\n${waits ? "" : body}`);
    });
  }

  const drain = async (request: Request): Promise<void> => {
    for await (const _chunk of request);
  };
  const readSize = async (request: Request) => ({ size: (await readAll(request)).length });

  it.each([
    ["a handler that reads it", false, { handle: readSize }],
    ["a handler that reads it", true, { handle: readSize }],
    [
      "a body parser after the gate",
      false,
      { after: (app: Express) => app.use(express.json()), handle: () => ({ size: 0 }) },
    ],
    [
      "middleware that has drained it",
      false,
      {
        before: (app: Express) =>
          app.use((request, _response, next) => void drain(request).then(() => next(), next)),
        handle: () => ({ size: 0 }),
      },
    ],
  ])(
    "is answered when it is empty but chunked, for %s (its end sent later: %s)",
    async (_reader, waits, config) => {
      const shop = await open(config);
      const fields = ["Content-Type: application/json", "Transfer-Encoding: chunked"];
      const answer = await sendByHand(shop, { fields, body: "0\r\n\r\n", waits });
      expect(answer).toContain("200 OK");
      expect(answer).toContain('{"size":0}');
    },
  );

  it("is waited for after 100-continue", async () => {
    const shop = await open({ after: (app) => app.use(express.text()), handle: handleBody });
    const fields = ["Content-Type: text/plain", "Content-Length: 5"];
    const answer = await sendByHand(shop, { fields, body: "hello", waits: true });
    expect(answer).toContain("200 OK");
    expect(answer).toContain('"hello"');
  });

  it.each([
    ["with its length", (bytes: Buffer) => ({ body: new Uint8Array(bytes) })],
    [
      "in chunks",
      (bytes: Buffer) => ({
        duplex: "half" as const,
        body: new ReadableStream({
          start(controller) {
            controller.enqueue(new Uint8Array(bytes));
            controller.close();
          },
        }),
      }),
    ],
  ])("is refused before any reservation above the limit, sent %s", async (_how, toInit) => {
    let runs = 0;
    const shop = await open({
      maxRequestBytes: 1000,
      handle: () => {
        runs += 1;
        return "served";
      },
    });
    const answer = await send(shop, toInit(Buffer.alloc(5000)));
    expect(answer.status).toBe(413);
    expect(await answer.json()).toMatchObject({ error: "request_too_large" });
    expect(runs).toBe(0);
    expect(shop.facilitator.verifications).toBe(0);
  });

  it.each([
    ["before", { before: (app: Express) => app.use(express.json()) }],
    ["after", { after: (app: Express) => app.use(express.json()) }],
  ])(
    "identifies another request when it differs, with the parser %s the gate",
    async (_where, place) => {
      const shop = await open({ ...place, handle: handleBody });
      const { headers } = await createBuyer().payFor(`${shop.url}/echo`, {
        init: { method: "POST" },
      });
      shop.facilitator.onSettle = async (settle) => {
        settle();
        throw new Error("no answer");
      };
      const sendBody = (body: string) =>
        fetch(`${shop.url}/echo`, { method: "POST", body, headers: { ...headers, ...json } });
      expect((await sendBody('{"a":1}')).status).toBe(503);
      shop.facilitator.onSettle = undefined;
      expect((await sendBody('{"a":2}')).status).toBe(409);
      expect(await (await sendBody('{"a":1}')).json()).toEqual({ a: 1 });
    },
  );

  it("allows no resumption when it was consumed without a trace", async () => {
    const shop = await open({
      before(app) {
        app.use((request, _response, next) => {
          request.resume();
          request.on("end", () => next());
        });
      },
      handle: () => "served",
    });
    const { headers } = await createBuyer().payFor(`${shop.url}/echo`, {
      init: { method: "POST" },
    });
    shop.facilitator.onSettle = async (settle) => {
      settle();
      throw new Error("no answer");
    };
    const again = () => fetch(`${shop.url}/echo`, { method: "POST", body: "x", headers });
    expect((await again()).status).toBe(503);
    shop.facilitator.onSettle = undefined;
    expect((await again()).status).toBe(409);
  });

  it("reserves nothing when it ends with its buyer's connection", async () => {
    let runs = 0;
    const shop = await open({
      handle: () => {
        runs += 1;
      },
    });
    const { headers } = await createBuyer().payFor(`${shop.url}/echo`, {
      init: { method: "POST" },
    });
    const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    const lines = ["POST /echo HTTP/1.1", "Host: shop", "Content-Length: 1000", ...head];
    await new Promise<void>((resolve) => {
      const socket = connect(shop.port, "127.0.0.1", () => {
        socket.write(`${lines.join("\r\n")}\r\n\r\nhalf`, () => socket.destroy());
      });
      socket.on("close", () => resolve());
    });
    const answer = await fetch(`${shop.url}/echo`, { method: "POST", headers });
    expect(answer.status).toBe(200);
    expect(runs).toBe(1);
    expect(headerName.paymentSignature in headers).toBe(true);
  });
});
