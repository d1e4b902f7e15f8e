import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { type Listening, listen } from "@coinslot/devnet";
import { describe, expect, it, onTestFinished } from "vitest";
import type { ExchangeEnd, Observer } from "./observer.ts";
import { startProxy } from "./proxy-server.ts";

interface Seen {
  target: string;
  status: number | undefined;
  sent: string;
  got: string;
  end: ExchangeEnd | undefined;
}

/** A proxy before a handler, and what it has seen. */
async function proxyBefore(handler: (incoming: IncomingMessage, answer: ServerResponse) => void) {
  const seller: Listening = await listen(handler);
  const seen: Seen[] = [];
  const observer: Observer = {
    open({ target }) {
      const one: Seen = { target, status: undefined, sent: "", got: "", end: undefined };
      seen.push(one);
      return {
        requestChunk: (chunk) => {
          one.sent += Buffer.from(chunk).toString();
        },
        answer: ({ status }) => {
          one.status = status;
        },
        answerChunk: (chunk) => {
          one.got += Buffer.from(chunk).toString();
        },
        end: (how) => {
          one.end = how;
        },
      };
    },
  };
  const proxy = await startProxy({ seller: new URL(seller.url), port: 0, observer });
  onTestFinished(async () => {
    await proxy.close();
    await seller.close();
  });
  return { proxy, seller, seen };
}

/** Sends text on a raw connection, and returns all that comes back. */
async function raw(url: string, message: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.write(message);
  return text(socket);
}

describe("the proxy", () => {
  it("passes method, encoded path, repeated headers and body as they are, and adds Via alone", async () => {
    const { proxy, seen } = await proxyBefore((incoming, answer) => {
      answer.sendDate = false;
      answer.writeHead(207, "Odd", [
        "X-A",
        "1",
        "x-a",
        "2",
        "Set-Cookie",
        "a=1",
        "Set-Cookie",
        "b=2",
      ]);
      incoming.pipe(answer, { end: false });
      incoming.on("end", () =>
        answer.end(`\n${incoming.method} ${incoming.url}\n${incoming.rawHeaders.join("|")}`),
      );
    });
    const message =
      "PATCH /a%2Fb/%7e;x?q=%41&&r HTTP/1.1\r\nHost: shop.test\r\nX-B: 1\r\nX-B: 2\r\nX-Hop: 3\r\nContent-Length: 2\r\nConnection: close, x-hop\r\n\r\nhi";
    const answer = await raw(proxy.url, message);
    expect(answer).toMatch(
      /^HTTP\/1\.1 207 Odd\r\nX-A: 1\r\nx-a: 2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n/,
    );
    expect(answer).not.toMatch(/^date:/im);
    expect(answer).toContain("hi");
    expect(answer).toContain("PATCH /a%2Fb/%7e;x?q=%41&&r");
    expect(answer).toMatch(
      /Host\|shop\.test\|X-B\|1\|X-B\|2\|Content-Length\|2\|Via\|1\.1 coinslot-inspector-\w{6}\|Connection\|keep-alive/,
    );
    expect(seen).toMatchObject([
      { target: "/a%2Fb/%7e;x?q=%41&&r", status: 207, sent: "hi", end: "answered" },
    ]);
  });

  it.each(["GET", "POST", "DELETE"])("announces no body for a %s without one", async (method) => {
    const { proxy } = await proxyBefore((incoming, answer) => {
      answer.end(JSON.stringify(incoming.headers));
    });
    const answer = await raw(
      proxy.url,
      `${method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).not.toMatch(/transfer-encoding":|content-length":/);
  });

  it("answers HEAD with the seller's length, and no body", async () => {
    const { proxy } = await proxyBefore((_request, answer) => {
      answer.setHeader("Content-Length", "12345");
      answer.end();
    });
    const answer = await fetch(proxy.url, { method: "HEAD" });
    expect([answer.status, answer.headers.get("content-length"), await answer.text()]).toEqual([
      200,
      "12345",
      "",
    ]);
  });

  it("streams an answer before it ends", async () => {
    let finish: () => void = () => undefined;
    const { proxy } = await proxyBefore((_request, answer) => {
      answer.write("first");
      finish = () => void answer.end("last");
    });
    const answer = await fetch(proxy.url);
    const reader = answer.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("first");
    finish();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("last");
  });

  it("passes chunks and trailers both ways", async () => {
    const { proxy } = await proxyBefore((incoming, answer) => {
      answer.setHeader("Trailer", "X-Sum");
      incoming.resume();
      incoming.on("end", () => {
        answer.write(JSON.stringify(incoming.trailers));
        answer.addTrailers({ "X-Sum": "42" });
        answer.end();
      });
    });
    const sent = request(proxy.url, { method: "POST", headers: { Trailer: "X-In" } });
    sent.write("a");
    sent.addTrailers({ "X-In": "7" });
    sent.end();
    const answer = await new Promise<IncomingMessage>((resolve) => sent.once("response", resolve));
    expect(JSON.parse(await text(answer))).toEqual({ "x-in": "7" });
    expect(answer.trailers).toEqual({ "x-sum": "42" });
  });

  it("asks for a body when the seller does, and not before", async () => {
    const server = createServer();
    server.on("checkContinue", (incoming: IncomingMessage, answer: ServerResponse) => {
      if (incoming.url === "/no") {
        answer.writeHead(402, { Connection: "close" }).end("pay");
        return;
      }
      answer.writeContinue();
      incoming.pipe(answer);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const seller = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const quiet = { requestChunk() {}, answer() {}, answerChunk() {}, end() {} };
    const proxy = await startProxy({ seller, port: 0, observer: { open: () => quiet } });
    onTestFinished(proxy.close);
    const ask = (path: string) =>
      new Promise<{ status: number | undefined; body: string; asked: boolean }>((resolve) => {
        let asked = false;
        const sent = request(`${proxy.url}${path}`, {
          method: "POST",
          headers: { Expect: "100-continue" },
        });
        sent.on("continue", () => {
          asked = true;
          sent.end("body");
        });
        sent.on("response", async (answer) => {
          resolve({ status: answer.statusCode, body: await text(answer), asked });
          sent.destroy();
        });
        sent.flushHeaders();
      });
    expect(await ask("/yes")).toEqual({ status: 200, body: "body", asked: true });
    expect(await ask("/no")).toEqual({ status: 402, body: "pay", asked: false });
  });

  it("refuses upgrades, tunnels and other hosts plainly", async () => {
    const { proxy, seen } = await proxyBefore((_request, answer) => void answer.end("reached"));
    const close = "Host: a\r\nConnection: close\r\n";
    const upgrade = `GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n\r\n`;
    expect(await raw(proxy.url, upgrade)).toMatch(
      /^HTTP\/1\.1 501 [\s\S]*passes no upgrade \(websocket\)/,
    );
    expect(await raw(proxy.url, `CONNECT b:1 HTTP/1.1\r\n${close}\r\n`)).toMatch(
      /^HTTP\/1\.1 501 /,
    );
    expect(await raw(proxy.url, `GET http://b/ HTTP/1.1\r\n${close}\r\n`)).toMatch(
      /^HTTP\/1\.1 400 /,
    );
    expect(await raw(proxy.url, `GET / HTTP/1.1\r\nHost: b\r\n${close}\r\n`)).toMatch(
      /^HTTP\/1\.1 400 /,
    );
    expect(seen).toEqual([]);
    const h2c = `GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade, close\r\nUpgrade: h2c\r\n\r\n`;
    expect(await raw(proxy.url, h2c)).toContain("reached");
  });

  it("breaks the seller's connection when the buyer leaves", async () => {
    let left: () => void = () => undefined;
    const hasLeft = new Promise<void>((resolve) => {
      left = resolve;
    });
    const { proxy, seen } = await proxyBefore((_request, answer) => {
      answer.write("some");
      answer.on("close", left);
    });
    const leaving = new AbortController();
    const answer = await fetch(proxy.url, { signal: leaving.signal });
    await answer.body?.getReader().read();
    leaving.abort();
    await hasLeft;
    await expect.poll(() => seen[0]?.end).toBe("buyer left");
  });

  it("breaks the buyer's connection when the seller does, in the middle of an answer", async () => {
    const { proxy, seen } = await proxyBefore((_request, answer) => {
      answer.write("some", () => answer.destroy());
    });
    const answer = await fetch(proxy.url);
    await expect(answer.text()).rejects.toThrow();
    expect(seen[0]?.end).toBe("seller broke off");
  });

  it("answers 502 for a seller that is not there, and one that closes unanswered", async () => {
    const { proxy, seller, seen } = await proxyBefore((incoming) => void incoming.socket.destroy());
    const broken = await fetch(proxy.url);
    expect([broken.status, await broken.text()]).toEqual([
      502,
      expect.stringContaining("may have run"),
    ]);
    await seller.close();
    const missing = await fetch(proxy.url);
    expect([missing.status, await missing.text()]).toEqual([
      502,
      expect.stringContaining("Is it running?"),
    ]);
    expect(seen.map(({ end }) => end)).toEqual(["seller broke off", "unreachable"]);
  });

  it.each([
    ["a status below 100", "HTTP/1.1 099 x\r\nContent-Length: 0\r\n\r\n"],
    ["a switch of protocols", "HTTP/1.1 101 x\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"],
    ["a status text that none may send", "HTTP/1.1 200 \u0001\r\nContent-Length: 0\r\n\r\n"],
  ])("answers 502 for %s", async (_case, message) => {
    const { proxy, seen } = await proxyBefore(({ socket }) => void socket.end(message));
    expect((await fetch(proxy.url)).status).toBe(502);
    expect(seen[0]?.end).toBe("seller broke off");
  });

  it("passes early hints that are links, and no others", async () => {
    const { proxy } = await proxyBefore(({ socket }) => {
      const hint = (link: string) => `HTTP/1.1 103 Early Hints\r\nLink: ${link}\r\n\r\n`;
      const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
      socket.end(`${hint("none")}${hint("</a.css>; rel=preload")}${answer}`);
    });
    const got = await raw(proxy.url, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    expect(got).toMatch(/^HTTP\/1.1 103 [\s\S]*a\.css[\s\S]*HTTP\/1.1 200 [\s\S]*ok$/);
    expect(got).not.toContain("none");
  });

  it("ends a loop whose seller is the proxy itself", async () => {
    const free = await listen();
    await free.close();
    const quiet = { requestChunk() {}, answer() {}, answerChunk() {}, end() {} };
    const observer: Observer = { open: () => quiet };
    const proxy = await startProxy({ seller: new URL(free.url), port: free.port, observer });
    onTestFinished(proxy.close);
    expect((await fetch(proxy.url)).status).toBe(508);
  });

  it("passes heads of 60 KB, as the seller takes them", async () => {
    const { proxy } = await proxyBefore((incoming, answer) => {
      answer.setHeader("X-Big", "y".repeat(50_000));
      answer.end(String(incoming.headers["x-big"]?.length));
    });
    const sent = request(proxy.url, {
      headers: { "X-Big": "x".repeat(60_000) },
      maxHeaderSize: 65_536,
    });
    sent.end();
    const answer = await new Promise<IncomingMessage>((resolve) => sent.once("response", resolve));
    answer.resume();
    // Node's own limit is the seller's, which answers by itself.
    expect(answer.statusCode).toBe(431);
  });
});
