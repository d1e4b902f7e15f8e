import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { systemClock } from "../clock.ts";
import { httpExchange } from "./http-exchange.ts";
import { type HttpPost, type HttpPostRequest, httpPost } from "./http-post.ts";

const answer = JSON.stringify({ jsonrpc: "2.0", id: 1, result: "é".repeat(5_000) });
const bytes = Buffer.byteLength(answer);
let server: Server;
let href: string;
let handle: (request: IncomingMessage, response: ServerResponse) => void;
let asked: { method: string | undefined; headers: IncomingMessage["headers"]; body: string }[];
let connections: number;

beforeEach(async () => {
  asked = [];
  connections = 0;
  server = createServer(async (request, response) => {
    const { method, headers } = request;
    asked.push({ method, headers, body: await text(request) });
    handle(request, response);
  });
  server.on("connection", () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = z.object({ port: z.number() }).parse(server.address());
  href = `http://127.0.0.1:${port}/v2?key=1`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

function post(change: Partial<HttpPostRequest> = {}) {
  return httpPost({
    href,
    headers: {},
    body: "{}",
    maxResponseBytes: bytes,
    signal: new AbortController().signal,
    ...change,
  });
}

function answerWith(body: string | Buffer, headers: Record<string, string> = {}) {
  handle = (_request, response) => {
    response.writeHead(200, headers);
    response.end(body);
  };
}

describe("an HTTP request", () => {
  test("carries its body, its headers and a user agent", async () => {
    answerWith(answer);

    await post({ body: '{"méthode":1}', headers: { authorization: "Basic abc" } });

    expect(asked).toMatchObject([
      {
        method: "POST",
        body: '{"méthode":1}',
        headers: {
          authorization: "Basic abc",
          "content-type": "application/json",
          "content-length": "14",
          "user-agent": "coinslot",
        },
      },
    ]);
  });

  test("reuses the previous connection", async () => {
    answerWith(answer);

    for (let count = 0; count < 3; count += 1) await post();

    expect(connections).toBe(1);
  });

  test("is refused with an invalid header", async () => {
    await expect(post({ headers: { "x-key": "two\nlines" } })).rejects.toThrow();
    expect(asked).toEqual([]);
  });

  test("is not sent after an abort", async () => {
    answerWith(answer);

    await expect(post({ signal: AbortSignal.abort() })).rejects.toThrow();
    expect(connections).toBe(0);
  });
});

describe("an HTTP answer", () => {
  test("is read whole, with its status and headers", async () => {
    handle = (_request, response) => {
      response.writeHead(429, { "Retry-After": "3" });
      for (const part of Buffer.from(answer)
        .toString("latin1")
        .match(/.{1,999}/gs) ?? []) {
        response.write(part, "latin1");
      }
      response.end();
    };

    const { status, headers, text } = await post();

    expect({ status, text }).toEqual({ status: 429, text: answer });
    expect(headers["retry-after"]).toBe("3");
  });

  test("an HTTP answer that is empty is an empty text", async () => {
    answerWith("");
    expect(await post()).toMatchObject({ status: 200, text: "" });
  });

  test.each([
    ["gzip", gzipSync(answer)],
    ["br", brotliCompressSync(answer)],
  ])("is decompressed: %s", async (encoding, packed) => {
    answerWith(packed, { "Content-Encoding": encoding });

    expect(await post()).toMatchObject({ status: 200, text: answer });
    expect(asked[0]?.headers["accept-encoding"]).toContain(encoding);
    expect(await post({ maxResponseBytes: bytes - 1 })).toMatchObject({ text: undefined });
  });

  test.each(["gzip", "br"])(
    "an HTTP answer that is empty needs no decompression: %s",
    async (encoding) => {
      answerWith("", { "Content-Encoding": encoding, "Content-Length": "0" });
      expect(await post()).toMatchObject({ status: 200, text: "" });
    },
  );

  test("an HTTP answer that breaks off during decompression is an error", async () => {
    answerWith(gzipSync(answer).subarray(0, 40), { "Content-Encoding": "gzip" });
    await expect(post()).rejects.toThrow();
  });

  test("an HTTP answer above the byte limit is not read to its end", async () => {
    let isGone = false;
    handle = (_request, response) => {
      response.on("close", () => {
        isGone = !response.writableEnded;
      });
      response.write(answer);
      response.write("more");
    };

    expect(await post()).toMatchObject({ status: 200, text: undefined });
    await expect.poll(() => isGone).toBe(true);
  });

  test("an HTTP answer that switches protocols is an error", async () => {
    handle = ({ socket }) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\n");
      socket.write("Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    };
    await expect(post()).rejects.toThrow();
  });

  test("interim HTTP answers without a final one are an error", async () => {
    handle = ({ socket }) => void socket.write("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(17));
    await expect(post()).rejects.toThrow("interim");
  });

  test("an HTTP answer that redirects is returned, and the redirect is not followed", async () => {
    handle = (_request, response) => {
      response.writeHead(307, { Location: href });
      response.end();
    };

    expect(await post()).toMatchObject({ status: 307, text: "" });
    expect(asked).toHaveLength(1);
  });
});

describe("an abort of an HTTP request", () => {
  test.each([
    ["before the answer", () => undefined],
    ["within the answer", (response: ServerResponse) => void response.write("{")],
  ])("ends the exchange %s", async (_when, begin) => {
    const controller = new AbortController();
    let isGone = false;
    handle = (_request, response) => {
      response.on("close", () => {
        isGone = true;
      });
      begin(response);
    };

    const sent = post({ signal: controller.signal });
    const ended = expect(sent).rejects.toThrow();
    await expect.poll(() => asked.length).toBe(1);
    controller.abort();

    await ended;
    await expect.poll(() => isGone).toBe(true);
  });
});

describe("an HTTP failure", () => {
  function exchange(change: { href?: string; post?: HttpPost } = {}) {
    return httpExchange({
      href,
      headers: {},
      body: "{}",
      timeoutMs: 5_000,
      maxResponseBytes: bytes,
      signal: new AbortController().signal,
      clock: systemClock,
      post: httpPost,
      ...change,
    });
  }

  test("counts as not sent where no connection was made", async () => {
    const secure = href.replace("http:", "https:");
    expect(await exchange({ href: secure })).toMatchObject({
      kind: "connection",
      maybeSent: false,
    });
    server.close();
    expect(await exchange()).toMatchObject({ code: "ECONNREFUSED", maybeSent: false });
  });

  test("counts as possibly sent where the connection broke", async () => {
    handle = ({ socket }) => socket.resetAndDestroy();
    expect(await exchange()).toMatchObject({ code: "ECONNRESET", maybeSent: true });
  });

  test("counts as possibly sent where encryption failed on an open connection", async () => {
    const code = "ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC";
    const post = () => Promise.reject(Object.assign(new Error("bad record mac"), { code }));
    expect(await exchange({ post })).toEqual({ kind: "connection", code, maybeSent: true });
  });
});
