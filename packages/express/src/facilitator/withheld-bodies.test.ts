import { connect, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { listen } from "@coinslot/devnet";
import type { Request } from "express";
import { describe, expect, it, onTestFinished } from "vitest";
import { type FacilitatorRouterOptions, facilitatorRouter } from "../index.ts";
import { processBodies } from "../replay/body-pool.ts";
import { createBuyer } from "../testing/buyer.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { openShop, option } from "../testing/shop.ts";
import { callBodies } from "./receive-body.ts";

/** Timeout for conditions, on a busy machine. */
const patience = { timeout: 20_000, interval: 10 };
const mebibyte = 2 ** 20;

const requirements = {
  scheme: "exact",
  network: option().network,
  amount: "1000",
  asset: "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb",
  payTo: "0x00000000000000000000000000000000000beef1",
  maxTimeoutSeconds: 300,
  extra: { name: "USDT0", version: "1" },
} as const;

/** The bytes of a call that a seller makes. */
async function writeCall(): Promise<Buffer> {
  const signed = { x402Version: 2, requirements, accepted: requirements } as const;
  const { payload } = await createBuyer().sign(signed);
  const call = { x402Version: 2, paymentPayload: payload, paymentRequirements: requirements };
  return Buffer.from(JSON.stringify(call));
}

/** Bytes as one chunk of a body. */
function chunk(bytes: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`${bytes.length.toString(16)}\r\n`),
    bytes,
    Buffer.from("\r\n"),
  ]);
}

const lastChunk = "0\r\n\r\n";

describe.each(expressVersions)("a body at the facilitator's router on $name", ({ express }) => {
  async function open(
    options: FacilitatorRouterOptions = {},
    facilitator = createPaperFacilitator(),
  ) {
    const sockets: Socket[] = [];
    const requests: Request[] = [];
    const app = express();
    app.use((request, _response, next) => {
      requests.push(request);
      next();
    });
    const clientKey = (request: Request) => request.get("X-Client");
    app.use(facilitatorRouter(facilitator, { clientKey, ...options }));
    const listening = await listen(app);
    onTestFinished(async () => {
      for (const socket of sockets) socket.destroy();
      await listening.close();
    });

    /** Sends a chunked body without its end. `answer` holds what has come back. */
    function withhold(path: string, bytes: Buffer, headers: Record<string, string> = {}) {
      const socket = connect(listening.port, "127.0.0.1");
      sockets.push(socket);
      const call = { socket, answer: "", isClosed: false };
      socket.on("data", (data) => {
        call.answer += data.toString("latin1");
      });
      socket.on("error", () => undefined);
      socket.on("close", () => {
        call.isClosed = true;
      });
      const all = { Host: "here", "Content-Type": "application/json", ...headers };
      const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.write(`POST ${path} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n${head.join("")}\r\n`);
      socket.write(chunk(bytes));
      return call;
    }
    const post = (path: string, body: Buffer, headers: Record<string, string> = {}) =>
      fetch(`${listening.url}${path}`, {
        method: "POST",
        headers: { "Content-Type": "application/json", ...headers },
        body,
      });
    const bytesRead = () => requests.reduce((sum, { socket }) => sum + socket.bytesRead, 0);
    return { withhold, post, bytesRead, requests };
  }

  it.each(["/verify", "/settle"])(
    "without an end has an eighth of 64 MiB with its client's others: %s drops the slowest",
    async (path) => {
      const { withhold, post } = await open();
      const sent = Buffer.alloc(65_000, " ");
      const another = withhold(path, sent, { "X-Client": "another" });
      const calls = Array.from({ length: 200 }, () =>
        withhold(path, sent, { "X-Client": "greedy" }),
      );
      const isOpen = ({ isClosed }: { isClosed: boolean }) => !isClosed;
      await expect
        .poll(() => calls.filter(isOpen).length * sent.length, patience)
        .toBeLessThanOrEqual(8 * mebibyte);
      expect(callBodies.heldBytes()).toBeLessThanOrEqual(9 * mebibyte);
      const dropped = calls.filter(({ isClosed }) => isClosed);
      const reason = path === "/verify" ? "invalidReason" : "errorReason";
      for (const { answer } of dropped) {
        expect(answer).toMatch(/^HTTP\/1.1 503 [\s\S]*Retry-After: 1\r\n/);
        expect(answer).toContain(`"${reason}":"request_dropped"`);
      }
      expect([another.isClosed, another.answer]).toEqual([false, ""]);
      const call = await writeCall();
      expect((await post(path, call, { "X-Client": "greedy" })).status).toBe(200);
    },
  );

  it("without an end is held as it came, and not inflated", async () => {
    const { withhold, post, bytesRead } = await open({ maxRequestBytes: mebibyte + 1 });
    const headers = { "Content-Encoding": "gzip" };
    const bomb = gzipSync(Buffer.alloc(mebibyte, " "));
    const before = process.memoryUsage().heapUsed;
    for (let count = 0; count < 200; count += 1) withhold("/verify", bomb, headers);
    await expect.poll(bytesRead, patience).toBeGreaterThan(200 * bomb.length);
    // What inflates beside it takes turns with it.
    expect((await post("/verify", bomb, headers)).status).toBe(400);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(100 * mebibyte);
    expect(callBodies.heldBytes()).toBe(200 * bomb.length);
  });

  it("may come slowly, and compressed", async () => {
    const { withhold, post } = await open();
    const call = await writeCall();
    const headers = { "Content-Encoding": "gzip" };
    const answer = await post("/verify", gzipSync(call), headers);
    expect(await answer.json()).toMatchObject({ isValid: true });
    const slow = withhold("/verify", call.subarray(0, 100));
    await expect.poll(callBodies.heldBytes, patience).toBe(100);
    slow.socket.write(Buffer.concat([chunk(call.subarray(100)), Buffer.from(lastChunk)]));
    await expect.poll(() => slow.answer, patience).toContain('"isValid":true');
    expect(slow.isClosed).toBe(false);
  });

  it("gives its room back once it is read, refused, or left", async () => {
    const { withhold, post } = await open({ maxRequestBytes: 3 * mebibyte });
    const bytes = Buffer.alloc(3 * mebibyte - 1, " ");
    for (let count = 0; count < 10; count += 1) {
      expect((await post("/verify", bytes)).status).toBe(400);
    }
    const left = withhold("/verify", Buffer.alloc(mebibyte, " "));
    await expect.poll(callBodies.heldBytes, patience).toBeGreaterThanOrEqual(mebibyte);
    left.socket.destroy();
    await expect.poll(callBodies.heldBytes, patience).toBe(0);
  });

  it("that is too large gets 413 before its end, and its connection goes on", async () => {
    const { withhold } = await open({ maxRequestBytes: 10_000 });
    const large = withhold("/settle", Buffer.alloc(20_000, " "));
    await expect.poll(() => large.answer, patience).toContain('"errorReason":"invalid_payload"');
    expect(large.answer).toMatch(/^HTTP\/1.1 413 /);
    expect(callBodies.heldBytes()).toBe(0);
    large.answer = "";
    large.socket.write(Buffer.concat([chunk(Buffer.alloc(200_000, " ")), Buffer.from(lastChunk)]));
    large.socket.write("GET /supported HTTP/1.1\r\nHost: here\r\n\r\n");
    await expect.poll(() => large.answer, patience).toMatch(/^HTTP\/1.1 200 /);
  });

  it("answers 500 where the seller's function fails to name its client", async () => {
    const errors: unknown[] = [];
    const error = new Error("no name");
    const { post } = await open({
      clientKey() {
        throw error;
      },
      onError: (reported) => errors.push(reported),
    });
    const answer = await post("/verify", await writeCall());
    expect(answer.status).toBe(500);
    expect(await answer.json()).toMatchObject({ invalidReason: "unexpected_verify_error" });
    await nextTurn();
    expect(errors).toEqual([error]);
  });

  it.each([
    ["another type", { "Content-Type": "text/plain" }],
    ["an unknown encoding", { "Content-Encoding": "zstd" }],
    ["an unknown charset", { "Content-Type": "application/json; charset=none" }],
  ])("of %s is not held after its answer", async (_name, headers) => {
    const { post, requests } = await open();
    expect((await post("/verify", Buffer.alloc(60_000, " "), headers)).status).toBe(400);
    await expect.poll(() => requests[0]?.readableEnded, patience).toBe(true);
  });

  it("is not held after its answer behind a call that is not answered yet", async () => {
    const facilitator = createPaperFacilitator();
    facilitator.onVerify = () => new Promise(() => undefined);
    const { withhold, requests } = await open({}, facilitator);
    const { socket } = withhold("/verify", await writeCall());
    socket.write(lastChunk);
    const head = "POST /verify HTTP/1.1\r\nHost: here\r\nContent-Type: text/plain\r\n";
    for (let count = 0; count < 4; count += 1) {
      socket.write(`${head}Content-Length: 60000\r\n\r\n`);
      socket.write(Buffer.alloc(60_000, " "));
    }
    const areEnded = () => requests.slice(1).map(({ readableEnded }) => readableEnded);
    await expect.poll(areEnded, patience).toEqual([true, true, true, true]);
    expect(requests[0]?.res?.writableEnded).toBe(false);
  });

  it("takes no room of uploads to gates of the same process", async () => {
    const shop = await openShop({
      express,
      routes: { "POST /upload": { accepts: option() } },
      before: (app) => app.use("/calls", facilitatorRouter(createPaperFacilitator())),
      serve: (app) => app.post("/upload", (_request, response) => void response.send("done")),
      options: { maxRequestBytes: 20 * mebibyte },
    });
    onTestFinished(() => shop.close());
    const init = { method: "POST" };
    const { headers } = await createBuyer().payFor(`${shop.url}/upload`, { init });
    const upload = connect(shop.port, "127.0.0.1");
    onTestFinished(() => void upload.destroy());
    let answer = "";
    upload.on("data", (data) => {
      answer += data.toString("latin1");
    });
    const all = { Host: "here", "Content-Length": `${12 * mebibyte}`, ...headers };
    const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    upload.write(`POST /upload HTTP/1.1\r\n${head.join("")}\r\n`);
    upload.write(Buffer.alloc(12 * mebibyte - 1, "x"));
    await expect.poll(processBodies.heldBytes, patience).toBeGreaterThan(10 * mebibyte);
    const json = { "Content-Type": "application/json" };
    const call = await fetch(`${shop.url}/calls/verify`, { ...init, headers: json, body: "1" });
    expect(call.status).toBe(400);
    upload.write("x");
    await expect.poll(() => answer, patience).toMatch(/^HTTP\/1.1 200 /);
  });

  it("has room where gates of the same process hold all of theirs", async () => {
    const { post } = await open();
    for (let count = 0; count < 64; count += 1) {
      const body = processBodies.open({
        key: `client ${count}`,
        maxUnverifiedBytes: 64 * mebibyte,
        maxBodyBytes: mebibyte,
        onDrop: () => undefined,
      });
      onTestFinished(body.close);
      body.hold(mebibyte);
      body.complete();
    }
    const answer = await post("/settle", await writeCall());
    expect([answer.status, await answer.json()]).toMatchObject([200, { success: true }]);
  });
});
