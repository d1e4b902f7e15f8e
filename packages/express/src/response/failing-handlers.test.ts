import { Agent, get, STATUS_CODES } from "node:http";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Listening } from "@coinslot/devnet";
import { headerName } from "@coinslot/protocol";
import compression from "compression";
import type { ErrorRequestHandler, Express, RequestHandler } from "express";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { createBuyer } from "../testing/buyer.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";
import { longText } from "../testing/ways-to-answer.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

function bytesOfBuffers(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

describe.each(expressVersions)("a failing handler on $name", ({ express }) => {
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
        // An error's message is the application's, and its stack stays hidden.
        app.set("env", "test");
        app.get("/answer", handler);
        config.after?.(app);
      },
    });
    opened.push(shop);
    return shop;
  }

  async function payTwice(shop: Shop): Promise<[supertest.Response, supertest.Response]> {
    const { headers } = await createBuyer().payFor(`${shop.url}/answer`);
    const first = await supertest(shop.url).get("/answer").set(headers);
    return [first, await supertest(shop.url).get("/answer").set(headers)];
  }

  it.each([400, 404, 500, 503])(
    "is not charged for status %i, and the same payment may try again",
    async (status) => {
      let tries = 0;
      const shop = await open((_request, response) => {
        tries += 1;
        if (tries === 1) response.status(status).json({ sorry: true });
        else response.json({ tries });
      });
      const [first, second] = await payTwice(shop);
      expect(first.status).toBe(status);
      expect(first.body).toEqual({ sorry: true });
      expect(first.get(headerName.paymentResponse)).toBeUndefined();
      expect(second.body).toEqual({ tries: 2 });
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

  it.each(failures)("is not charged when it %s", async (title, handler) => {
    const shop = await open(handler);
    const [first] = await payTwice(shop);
    expect(first.status).toBe(title === "finds no route" ? 404 : 500);
    expect(first.text).not.toContain("half");
    expect(shop.facilitator.settled).toHaveLength(0);
  });

  it("is answered by the application's own error handler when it throws", async () => {
    const shop = await open(
      (_request, response) => {
        response.write("half of a sec");
        throw new Error("broken");
      },
      {
        after(app) {
          const handleError: ErrorRequestHandler = (_error, _request, response, next) => {
            if (response.headersSent) next(_error);
            else response.status(418).json({ error: "ours" });
          };
          app.use(handleError);
        },
      },
    );
    const [first] = await payTwice(shop);
    expect(first.status).toBe(418);
    expect(first.body).toEqual({ error: "ours" });
    expect(shop.facilitator.settled).toHaveLength(0);
  });

  it.each([1, 20_000])(
    "is answered as a whole after a partial answer (%i times a few words), compressed after the gate",
    async (times) => {
      const shop = await open((_request, response, next) => {
        compression({ threshold: 0 })(_request, response, () => {
          response.type("text").write("half of a secret ".repeat(times));
          next(new Error("broken"));
        });
      });
      const [first, second] = await payTwice(shop);
      for (const answer of [first, second]) {
        expect(answer.status).toBe(500);
        expect(answer.get("Content-Encoding")).toBeUndefined();
        expect(answer.body).toMatchObject({ error: "internal_error" });
      }
      expect(shop.facilitator.settled).toHaveLength(0);
      expect(shop.errors).toEqual([]);
    },
  );

  it("is answered after a partial answer without that part's content headers", async () => {
    const shop = await open(
      (_request, response, next) => {
        response.set({ "Content-Length": "1000", "Content-Encoding": "gzip", "X-Own": "kept" });
        response.write("half of a secret");
        next(new Error("broken"));
      },
      {
        after(app) {
          const handleError: ErrorRequestHandler = (_error, _request, response, _next) => {
            response.status(500).end("sorry");
          };
          app.use(handleError);
        },
      },
    );
    const [first] = await payTwice(shop);
    expect(first.get("Content-Length")).not.toBe("1000");
    expect(first.get("Content-Encoding")).toBeUndefined();
    expect(first.get("X-Own")).toBe("kept");
    expect(first.text).toBe("sorry");
  });

  it("is answered over its time limit with 504 and not charged, and its late writes are dropped", async () => {
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
    const answer = await supertest(shop.url).get("/answer").set(headers).expect(504);
    expect(answer.body).toMatchObject({ error: "handler_timeout", charged: false });
    late();
    await isOver;
    await supertest(shop.url).get("/answer").set(headers).expect(200);
    expect(lateFault).toBeUndefined();
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it.each([
    ["over its time limit", { timeout: 0.05 }, "handler_timeout"],
    ["above the size limit", {}, "response_too_large"],
  ])(
    "is harmless to other requests of the connection when it is %s and fails afterwards",
    async (_case, config, error) => {
      let fail: () => void = () => undefined;
      const shop = await open(
        (_request, response, next) => {
          fail = () => next(new Error("broken"));
          if (error === "response_too_large") response.write("x".repeat(100_001));
        },
        {
          ...config,
          after(app) {
            app.get("/other", (_request, response) => {
              fail();
              process.nextTick(() => response.send("whole"));
            });
          },
        },
      );
      const { headers } = await createBuyer().payFor(`${shop.url}/answer`);
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const receive = (path: string, headers = {}) =>
        new Promise<string>((resolve, reject) => {
          get(`${shop.url}${path}`, { agent, headers }, (response) => {
            text(response).then(resolve, reject);
          }).on("error", reject);
        });
      expect(await receive("/answer", headers)).toContain(error);
      expect(await receive("/other")).toBe("whole");
      agent.destroy();
    },
  );

  it("leaves nothing of its partial answer in memory over its time limit, although it keeps the response", async () => {
    const kept: unknown[] = [];
    const before = bytesOfBuffers();
    const shop = await open(
      (_request, response) => {
        kept.push(response);
        response.write(Buffer.alloc(100_000));
      },
      { timeout: 0.05 },
    );
    for (let count = 0; count < 20; count += 1) {
      const { headers } = await createBuyer().payFor(`${shop.url}/answer`);
      expect((await supertest(shop.url).get("/answer").set(headers)).body).toMatchObject({
        error: "handler_timeout",
      });
    }
    expect(kept).toHaveLength(20);
    // The requests' own memory is freed a moment later, and retained partial answers would stay.
    await expect.poll(bytesOfBuffers, { timeout: 20_000 }).toBeLessThan(before + 1_000_000);
  });

  it("is not charged above the size limit, and gets an error that says so", async () => {
    const shop = await open((_request, response) => {
      Readable.from(Array.from({ length: 100 }, () => longText)).pipe(response);
    });
    const [first] = await payTwice(shop);
    expect(first.status).toBe(500);
    expect(first.body).toMatchObject({ error: "response_too_large" });
    expect(shop.facilitator.settled).toHaveLength(0);
  });

  it("is not charged for a failing source stream", async () => {
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

  it("is charged for the first answer when it answers twice", async () => {
    const shop = await open((_request, response) => {
      response.json({ first: true });
      try {
        response.status(500).json({ second: true });
      } catch {
        // As without the gate: the second answer throws.
      }
    });
    const [first] = await payTwice(shop);
    expect(first.status).toBe(200);
    expect(first.body).toEqual({ first: true });
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it.each([200, 404])(
    "harms neither its answer nor the process after it has answered with %i",
    async (status) => {
      let late: () => unknown = () => undefined;
      const shop = await open((_request, response, next) => {
        late = () => response.removeHeader("Content-Encoding");
        response.status(status).json({ first: true });
        next(new Error("broken"));
      });
      shop.facilitator.onSettle = async (settle) => {
        // Until Express has written its own answer for the error.
        await setImmediate();
        return settle();
      };
      const { headers } = await createBuyer().payFor(`${shop.url}/answer`);
      // By fetch: supertest does not expose the status message.
      const first = await fetch(`${shop.url}/answer`, { headers });
      expect(first.status).toBe(status);
      expect(first.statusText).toBe(STATUS_CODES[status]);
      expect(await first.json()).toEqual({ first: true });
      await supertest(shop.url)
        .get("/answer")
        .set(headers)
        .expect(status === 200 ? 402 : status);
      expect(shop.facilitator.settled).toHaveLength(status === 200 ? 1 : 0);
      // Express does this if the answer was quicker, outside any error handler.
      expect(late).not.toThrow();
    },
  );

  it("is not charged for an invalid status", async () => {
    const shop = await open((_request, response) => {
      response.writeHead(42).end("x");
    });
    const [first] = await payTwice(shop);
    expect(first.status).toBe(500);
    expect(shop.facilitator.settled).toHaveLength(0);
  });
});

describe("a rejecting handler on Express 5", () => {
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
    await supertest(shop.url).get("/answer").set(headers).expect(500);
    expect(shop.facilitator.settled).toHaveLength(0);
  });
});
