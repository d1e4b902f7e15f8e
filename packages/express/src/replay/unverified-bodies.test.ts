import { connect, type Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { encodePaymentPayload, headerName } from "@coinslot/protocol";
import type { Request, RequestHandler } from "express";
import { afterEach, describe, expect, it } from "vitest";
import { createReservationStore, type PaymentMiddlewareOptions } from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";
import { processBodies } from "./body-pool.ts";

const opened: Shop[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

function bytesOfBuffers(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

const bodyBytes = 65_536;
const sentBytes = 60_000;

async function open(
  options: PaymentMiddlewareOptions,
  facilitator = createPaperFacilitator(),
): Promise<Shop> {
  const shop = await openShop({
    routes: { "POST /upload": { accepts: option() } },
    serve: (app) => app.post("/upload", (_request, response) => void response.send("done")),
    options,
    facilitator,
  });
  opened.push(shop);
  return shop;
}

const init = { method: "POST" };
/** Of a browser that sends a form. */
const formHeaders = {
  Accept: "text/html",
  "Content-Type": "application/x-www-form-urlencoded",
  "Sec-Fetch-Mode": "navigate",
  "Sec-Fetch-Site": "same-origin",
};

/** Opens a connection, and sends the text. `answer` holds the bytes received. */
function send(shop: Shop, text: string) {
  const socket = connect(shop.port);
  sockets.push(socket);
  const connection = { socket, answer: "", isClosed: false };
  socket.on("data", (chunk) => {
    connection.answer += chunk.toString("latin1");
  });
  socket.on("error", () => undefined);
  socket.on("close", () => {
    connection.isClosed = true;
  });
  socket.write(text);
  return connection;
}

/** Sends a request without the end of its body. */
function withhold(shop: Shop, headers: Record<string, string>, sent = sentBytes) {
  const isChunked = "Transfer-Encoding" in headers;
  const length = isChunked ? {} : { "Content-Length": `${bodyBytes}` };
  const all = Object.entries({ Host: "shop", ...length, ...headers });
  const head = all.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const connection = send(shop, `POST /upload HTTP/1.1\r\n${head}\r\n`);
  connection.socket.write(Buffer.alloc(sent, "x"));
  return connection;
}

/** A payment with another account's signature. */
async function forge(shop: Shop): Promise<Record<string, string>> {
  const url = `${shop.url}/upload`;
  const [{ payload }, other] = await Promise.all([
    createBuyer().payFor(url, { init }),
    createBuyer().payFor(url, { init }),
  ]);
  if (payload.x402Version !== 2) throw new Error("It pays in version 1");
  const { signature } = other.payload.payload;
  const forged = { ...payload, payload: { ...payload.payload, signature } };
  return { [headerName.paymentSignature]: encodePaymentPayload(forged) };
}

describe("the body of an unverified payment", () => {
  it("is not waited for when the signature is forged", async () => {
    const shop = await open({});
    const connection = withhold(shop, await forge(shop));
    await expect
      .poll(() => connection.answer, { interval: 5, timeout: 20_000 })
      .toMatch(/^HTTP\/1.1 402 /);
    expect(connection.answer).toContain("invalid_exact_evm_signature");
  });

  it("is not waited for when a facilitator of version 1 reports a forged signature", async () => {
    const verify = async () => ({
      isValid: false,
      invalidReason: "invalid_exact_evm_payload_signature",
    });
    const shop = await open({}, { ...createPaperFacilitator(), verify });
    const connection = withhold(shop, await forge(shop));
    await expect
      .poll(() => connection.answer, { interval: 5, timeout: 20_000 })
      .toMatch(/^HTTP\/1.1 402 /);
  });

  it("is read where the payer's code may accept the signature", async () => {
    const paper = createPaperFacilitator();
    const facilitator = { ...paper, verify: async () => ({ isValid: true }) };
    const shop = await open({}, facilitator);
    const headers = await forge(shop);
    const answer = await fetch(`${shop.url}/upload`, { ...init, headers, body: "a body" });
    expect([answer.status, await answer.text()]).toEqual([200, "done"]);
  });

  it("shares one bound with all clients: the slowest is dropped, and a buyer is served", async () => {
    const maxUnverifiedBytes = 16 * bodyBytes;
    const shop = await open({
      maxRequestBytes: bodyBytes,
      maxUnverifiedBytes,
      clientKey: (request) => request.get("X-Client"),
    });
    const buyer = createBuyer();
    const payments = await Promise.all(
      Array.from({ length: 100 }, () => buyer.payFor(`${shop.url}/upload`, { init })),
    );
    const connections = payments.map(({ headers }, index) =>
      withhold(shop, { ...headers, "X-Client": `client ${index}` }),
    );
    const held = () => connections.filter(({ isClosed }) => !isClosed).length * sentBytes;
    await expect
      .poll(held, { interval: 10, timeout: 20_000 })
      .toBeLessThanOrEqual(maxUnverifiedBytes);
    const dropped = connections.filter(({ isClosed }) => isClosed);
    for (const { answer } of dropped) {
      expect(answer).toMatch(
        /^HTTP\/1.1 503 [\s\S]*Retry-After: 1[\s\S]*"error":"request_dropped"/,
      );
    }
    const { headers } = await createBuyer().payFor(`${shop.url}/upload`, { init });
    const body = Buffer.alloc(bodyBytes, "y");
    const answer = await fetch(`${shop.url}/upload`, { ...init, headers, body });
    expect(answer.status).toBe(200);
    expect(held()).toBeLessThanOrEqual(maxUnverifiedBytes);
  });

  it("frees its room once its payment is decided", async () => {
    const shop = await open({ maxRequestBytes: bodyBytes, maxUnverifiedBytes: bodyBytes });
    const buyer = createBuyer();
    const statuses: number[] = [];
    for (let count = 0; count < 3; count += 1) {
      const { headers } = await buyer.payFor(`${shop.url}/upload`, { init });
      const body = Buffer.alloc(bodyBytes, "y");
      statuses.push((await fetch(`${shop.url}/upload`, { ...init, headers, body })).status);
    }
    expect(statuses).toEqual([200, 200, 200]);
  });

  it("is not held for a waiting payer where half of the room is taken", async () => {
    let finish: () => void = () => undefined;
    let runs = 0;
    const shop = await openShop({
      routes: { "POST /upload": { accepts: option() } },
      serve: (app) =>
        app.post("/upload", (_request, response) => {
          runs += 1;
          finish = () => response.send("done");
        }),
      options: {
        maxRequestBytes: bodyBytes,
        maxUnverifiedBytes: bodyBytes,
        reservations: createReservationStore({ maxReleasesPerMinute: 1 }),
      },
    });
    opened.push(shop);
    const url = `${shop.url}/upload`;
    const buyer = createBuyer();
    const [first, second] = [await buyer.payFor(url, { init }), await buyer.payFor(url, { init })];
    const body = Buffer.alloc(bodyBytes, "y");
    const running = fetch(url, { ...init, headers: first.headers, body });
    await expect.poll(() => runs, { interval: 5, timeout: 20_000 }).toBe(1);
    const signal = AbortSignal.timeout(60_000);
    const turnedAway = await fetch(url, { ...init, headers: second.headers, body, signal });
    expect(turnedAway.status).toBe(429);
    finish();
    expect((await running).status).toBe(200);
  });

  it("counts against its client's eighth of the room, and against no other client's", async () => {
    const shop = await open({
      maxRequestBytes: bodyBytes,
      maxUnverifiedBytes: 32 * bodyBytes,
      clientKey: (request) => request.get("X-Client"),
    });
    const buyer = createBuyer();
    const payments = await Promise.all(
      Array.from({ length: 31 }, () => buyer.payFor(`${shop.url}/upload`, { init })),
    );
    const [first, ...others] = payments;
    const another = withhold(shop, { ...first?.headers, "X-Client": "another" });
    const connections = others.map(({ headers }) =>
      withhold(shop, { ...headers, "X-Client": "greedy" }),
    );
    const held = () => connections.filter(({ isClosed }) => !isClosed).length;
    await expect.poll(held, { interval: 10, timeout: 20_000 }).toBeLessThanOrEqual(4);
    expect(held()).toBeGreaterThan(0);
    expect([another.isClosed, another.answer]).toEqual([false, ""]);
  });

  it("frees its client's room once it is decided", async () => {
    const maxUnverifiedBytes = 2 * bodyBytes;
    const shop = await open({ maxRequestBytes: bodyBytes, maxUnverifiedBytes });
    const url = `${shop.url}/upload`;
    const body = Buffer.alloc(bodyBytes, "y");
    for (let count = 0; count < 4; count += 1) {
      const { headers } = await createBuyer().payFor(url, { init });
      expect((await fetch(url, { ...init, headers, body })).status).toBe(200);
    }
  });

  it("waits for its payer's other requests within half of the room", async () => {
    const runs: (() => void)[] = [];
    const shop = await openShop({
      routes: { "POST /upload": { accepts: option() } },
      serve: (app) =>
        app.post("/upload", (_request, response) => void runs.push(() => response.send("done"))),
      options: {
        maxRequestBytes: bodyBytes,
        maxUnverifiedBytes: 4 * bodyBytes,
        clientKey: (request) => request.get("X-Client"),
        reservations: createReservationStore({ maxReleasesPerMinute: 1 }),
      },
    });
    opened.push(shop);
    const url = `${shop.url}/upload`;
    const buyer = createBuyer();
    const statuses: number[] = [];
    const sendBy = async (client: number) => {
      const { headers } = await buyer.payFor(url, { init });
      const body = Buffer.alloc(bodyBytes, "y");
      const sent = { ...headers, "X-Client": `client ${client}` };
      statuses.push((await fetch(url, { ...init, headers: sent, body })).status);
    };
    const first = sendBy(1);
    await expect.poll(() => runs.length, { interval: 5, timeout: 20_000 }).toBe(1);
    const others = [2, 3, 4].map(sendBy);
    // Long before the waiting ones time out.
    await expect.poll(() => statuses, { interval: 5, timeout: 20_000 }).toContain(429);
    runs[0]?.();
    await first;
    const settled = Promise.all(others);
    await expect
      .poll(
        () => {
          for (const answer of runs) answer();
          return statuses.length;
        },
        { interval: 5, timeout: 20_000 },
      )
      .toBe(4);
    await settled;
    expect(statuses.filter((status) => status !== 429 && status !== 200)).toEqual([]);
  });

  it("takes room of its client's others by the same measure where it is a page's form", async () => {
    const large = 12 * 2 ** 20;
    const shop = await open({ maxRequestBytes: 20 * 2 ** 20 });
    const url = `${shop.url}/upload`;
    const { headers } = await createBuyer().payFor(url, { init });
    const upload = withhold(shop, { ...headers, "Content-Length": `${large}` }, large - 1);
    await expect
      .poll(processBodies.heldBytes, { interval: 10, timeout: 20_000 })
      .toBeGreaterThan(10 * 2 ** 20);
    const page = await fetch(url, { ...init, headers: formHeaders, body: "a=1" });
    expect(page.status).toBe(402);
    upload.socket.write("x");
    await expect
      .poll(() => upload.answer, { interval: 10, timeout: 20_000 })
      .toMatch(/^HTTP\/1.1 200 /);
  });
});

describe("a body that no handler reads is not held after its answer", () => {
  const poor = () => ({ isValid: false, invalidReason: "insufficient_funds" });

  async function openRecorded(config: { before?: RequestHandler } = {}) {
    const requests: Request[] = [];
    const shop = await openShop({
      routes: { "POST /upload": { accepts: option() } },
      before(app) {
        app.use((request, _response, next) => {
          requests.push(request);
          next();
        });
        if (config.before) app.use(config.before);
      },
      serve: (app) => app.post("/upload", (_request, response) => void response.send("done")),
    });
    opened.push(shop);
    const isEnded = () => requests.at(-1)?.readableEnded;
    return { shop, url: `${shop.url}/upload`, requests, isEnded };
  }

  const patience = { interval: 10, timeout: 20_000 };

  it.each([
    ["a payment without money", 402, poor],
    ["a sale", 200, undefined],
  ])("of %s", async (_name, status, onVerify) => {
    const { shop, url, isEnded } = await openRecorded();
    shop.facilitator.onVerify = onVerify;
    const { headers } = await createBuyer().payFor(url, { init });
    const body = Buffer.alloc(2 ** 20, "x");
    expect((await fetch(url, { ...init, headers, body })).status).toBe(status);
    await expect.poll(isEnded, patience).toBe(true);
  });

  it("of payments without money, behind a request that is not answered yet", async () => {
    const { shop, url, requests } = await openRecorded({
      before(request, _response, next) {
        if (request.path !== "/slow") next();
      },
    });
    shop.facilitator.onVerify = poor;
    const { headers } = await createBuyer().payFor(url, { init });
    requests.length = 0;
    const { socket } = send(shop, "GET /slow HTTP/1.1\r\nHost: shop\r\n\r\n");
    const all = Object.entries({ Host: "shop", "Content-Length": `${2 ** 20}`, ...headers });
    const head = all.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    const body = Buffer.alloc(2 ** 20, "x");
    const before = bytesOfBuffers();
    for (let count = 0; count < 4; count += 1) {
      socket.write(`POST /upload HTTP/1.1\r\n${head}\r\n`);
      socket.write(body);
    }
    const areEnded = () => requests.slice(1).map(({ readableEnded }) => readableEnded);
    await expect.poll(areEnded, patience).toEqual([true, true, true, true]);
    expect(requests[0]?.res?.writableEnded).toBe(false);
    await expect.poll(() => bytesOfBuffers() - before, patience).toBeLessThan(2 ** 20);
  });

  it("of a form that is too large for a page", async () => {
    const { shop, requests } = await openRecorded();
    const sent = withhold(shop, { ...formHeaders, "Transfer-Encoding": "chunked" }, 0);
    sent.socket.write(`f000\r\n${"x".repeat(0xf000)}\r\n`);
    await expect.poll(() => sent.answer, patience).toMatch(/^HTTP\/1.1 402 /);
    await expect.poll(() => requests.at(-1)?.readableLength, patience).toBe(0);
    sent.socket.write("0\r\n\r\n");
    await expect.poll(() => requests.at(-1)?.readableEnded, patience).toBe(true);
  });

  it("of a request that other middleware answers while it comes", async () => {
    const answers: (() => void)[] = [];
    const { shop, url, requests, isEnded } = await openRecorded({
      before(_request, response, next) {
        answers.push(() => void response.status(503).send("late"));
        next();
      },
    });
    const { headers } = await createBuyer().payFor(url, { init });
    const sent = withhold(shop, headers);
    await expect.poll(processBodies.heldBytes, patience).toBe(sentBytes);
    answers.at(-1)?.();
    await expect.poll(processBodies.heldBytes, patience).toBe(0);
    sent.socket.write(Buffer.alloc(bodyBytes - sentBytes, "x"));
    await expect.poll(isEnded, patience).toBe(true);
    expect([requests.length, sent.answer]).toEqual([2, expect.stringMatching(/^HTTP\/1.1 503 /)]);
  });
});
