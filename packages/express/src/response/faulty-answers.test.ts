import { createServer, request as sendRequest } from "node:http";
import type { AddressInfo } from "node:net";
import type { Listening } from "@coinslot/devnet";
import express from "express";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { type PaymentMiddlewareOptions, paymentMiddleware } from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { failFirstWrite, neverClose, openShop, option, type Shop } from "../testing/shop.ts";

const opened: Pick<Listening, "close">[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

async function sell(
  handler: express.RequestHandler,
  timeout = 10,
  options: PaymentMiddlewareOptions = {},
): Promise<Shop> {
  const shop = await openShop({
    routes: { "GET /paid": { accepts: option(), handlerTimeoutSeconds: timeout } },
    serve: (app) => app.get("/paid", handler),
    options,
  });
  opened.push(shop);
  return shop;
}

describe("an answer that Node refuses to write", () => {
  it.each([
    [
      "its status message",
      (response: express.Response) => {
        response.statusMessage = "☕";
        response.end("coffee");
      },
    ],
    ["a status of an interim answer", (response: express.Response) => response.status(103).end()],
    [
      "the name of a trailer",
      (response: express.Response) => {
        response.write("coffee");
        response.addTrailers({ "no name": "x" });
        response.end();
      },
    ],
  ])("fails in the handler for %s, and is not charged", async (_case, answer) => {
    const shop = await sell((_request, response) => answer(response));
    const { headers } = await createBuyer().payFor(`${shop.url}/paid`);
    await supertest(shop.url).get("/paid").set(headers).expect(500);
    expect(shop.facilitator.settled).toEqual([]);
  });
});

describe("a response of an adapter without a connection, as for AWS Lambda", () => {
  it("has no chunks, and so no trailers", async () => {
    const shop = await sell((_request, response) => {
      response.useChunkedEncodingByDefault = false;
      response.setHeader("Trailer", "X-Sum");
      response.write("coffee");
      response.addTrailers({ "X-Sum": "7" });
      response.end();
    });
    const { headers } = await createBuyer().payFor(`${shop.url}/paid`);
    const { text } = await supertest(shop.url).get("/paid").set(headers).expect(200);
    expect(text).toBe("coffee");
    expect(shop.errors).toEqual([]);
  });

  it("frees a payment whose answer it fails to write, although it never closes", async () => {
    const shop = await openShop({
      routes: { "GET /paid": { accepts: option() } },
      before: (app) => app.use(neverClose, failFirstWrite()),
      serve: (app) => app.get("/paid", (_request, response) => void response.send("coffee")),
    });
    opened.push(shop);
    const { headers } = await createBuyer().payFor(`${shop.url}/paid`);
    const lost = new AbortController();
    const sent = fetch(`${shop.url}/paid`, { headers, signal: lost.signal });
    const unanswered = expect(sent).rejects.toThrow();
    await expect.poll(() => shop.errors.length).toBe(1);
    const { text } = await supertest(shop.url).get("/paid").set(headers).expect(200);
    expect(text).toBe("coffee");
    expect(shop.facilitator.settled).toHaveLength(1);
    lost.abort();
    await unanswered;
  });
});

describe("a handler that fails after the settlement", () => {
  it("gets an answer that claims no refund, and its payment has no third run", async () => {
    let runs = 0;
    const handler: express.RequestHandler = (_request, response) => {
      runs += 1;
      if (runs !== 2) response.json({ run: runs });
    };
    const shop = await sell(handler, 0.2, { maxKeptAnswerBytes: 0 });
    const { headers } = await createBuyer().payFor(`${shop.url}/paid`);
    // The first settlement moves the money, and its answer is lost.
    shop.facilitator.onSettle = async (settle) => {
      settle();
      throw new Error("lost");
    };
    await supertest(shop.url).get("/paid").set(headers).expect(503);
    shop.facilitator.onSettle = async (settle) => settle();

    const late = await supertest(shop.url).get("/paid").set(headers).expect(504);
    expect(late.body).toMatchObject({ message: expect.stringContaining("has been paid") });
    await supertest(shop.url).get("/paid").set(headers).expect(402);
    expect(runs).toBe(2);
    expect(shop.facilitator.settled).toHaveLength(1);
  });
});

describe("a gate that is called directly", () => {
  it("answers 500 and frees the payment when the next middleware throws", async () => {
    const facilitator = createPaperFacilitator();
    const errors: unknown[] = [];
    const gate = paymentMiddleware({ "GET /paid": { accepts: option() } }, facilitator, {
      onError: (error) => errors.push(error),
    });
    await gate.ready();
    let runs = 0;
    const app = express();
    app.use((request, response) => {
      gate(request, response, () => {
        runs += 1;
        if (runs === 1) throw new Error("thrown past Express");
        response.json({ runs });
      });
    });
    const server = createServer(app).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    opened.push({
      close: () =>
        new Promise((resolve) => {
          server.close(() => resolve());
          server.closeAllConnections();
        }),
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/paid`;
    const { headers } = await createBuyer().payFor(url);
    await supertest(url).get("").set(headers).expect(500);
    expect(errors).toHaveLength(1);
    await supertest(url).get("").set(headers).expect(200);
    expect(facilitator.settled).toHaveLength(1);
  });
});

describe("a server that refuses bodies for bodiless answers", () => {
  it("answers HEAD, unpaid and paid", async () => {
    const facilitator = createPaperFacilitator();
    const gate = paymentMiddleware({ "GET /paid": { accepts: option() } }, facilitator);
    await gate.ready();
    const app = express();
    app.use(gate);
    app.get("/paid", (_request, response) => {
      response.json({ some: "body" });
    });
    const server = createServer({ rejectNonStandardBodyWrites: true }, app);
    server.listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    opened.push({
      close: () =>
        new Promise((resolve) => {
          server.close(() => resolve());
          server.closeAllConnections();
        }),
    });
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/paid`;
    const head = (headers: Record<string, string>) =>
      new Promise<{ status: number | undefined; length: string | undefined }>((resolve, reject) => {
        const sent = sendRequest(url, { method: "HEAD", headers, agent: false }, (response) => {
          response.resume();
          const { statusCode: status, headers: got } = response;
          resolve({ status, length: got["content-length"] });
        });
        sent.on("error", reject);
        sent.end();
      });
    expect((await head({})).status).toBe(402);
    const { headers } = await createBuyer().payFor(url);
    const paid = await head(headers);
    expect(paid).toEqual({ status: 200, length: String('{"some":"body"}'.length) });
    expect(facilitator.settled).toHaveLength(1);
  });
});
