import { createServer as createTcpServer } from "node:net";
import { listen } from "@coinslot/devnet";
import { Webhook } from "standardwebhooks";
import { describe, expect, it, onTestFinished } from "vitest";
import { attemptDelivery } from "./attempt-delivery.ts";
import { createPoster } from "./post-event.ts";
import { createHostResolver, createPublicLookup } from "./public-lookup.ts";
import { createSigner } from "./sign-event.ts";

const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const oldSecret = `whsec_${Buffer.alloc(32, 8).toString("base64")}`;

type Handler = Parameters<typeof listen>[0];

async function receive(handler: Handler): Promise<string> {
  const { url, close } = await listen(handler);
  onTestFinished(close);
  return url;
}

function attempt(url: string, { timeoutMs = 20_000, isPublic = false } = {}) {
  const lookup = isPublic ? createPublicLookup(createHostResolver({ timeoutMs })) : undefined;
  const post = createPoster({ timeoutMs, lookup });
  const target = { url: new URL(url), sign: createSigner([secret, oldSecret]), post };
  return attemptDelivery(target, { id: "evt_1", body: '{"a":1}', nowMs: Date.now() });
}

describe("an attempt to deliver", () => {
  it("is verified by the Standard Webhooks library, with either secret during a rotation", async () => {
    const verified: unknown[] = [];
    const url = await receive((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const headers = Object.fromEntries(
          Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
        );
        for (const each of [secret, oldSecret]) {
          verified.push(new Webhook(each).verify(Buffer.concat(chunks).toString(), headers));
        }
        response.writeHead(204).end();
      });
    });
    expect(await attempt(url)).toEqual({ outcome: "delivered" });
    expect(verified).toEqual([{ a: 1 }, { a: 1 }]);
  });

  it("fails with a redirect, and does not follow it", async () => {
    let redirected = 0;
    const target = await receive((_, response) => {
      redirected += 1;
      response.end();
    });
    const url = await receive((_, response) => {
      response.writeHead(301, { location: target }).end();
    });
    expect(await attempt(url)).toEqual({
      outcome: "failed",
      error: "answered 301: redirects are not followed, configure the new URL",
    });
    expect(redirected).toBe(0);
  });

  it("fails with a status of 500", async () => {
    const url = await receive((_, response) => response.writeHead(500).end());
    expect(await attempt(url)).toEqual({ outcome: "failed", error: "answered 500" });
  });

  it("fails without an answer in time", async () => {
    const url = await receive(() => undefined);
    expect(await attempt(url, { timeoutMs: 50 })).toEqual({
      outcome: "failed",
      error: "no answer in time",
    });
  });

  it("counts an answer of 10 MB by its status, and cuts it", async () => {
    let sent = 0;
    const whole = 10 * 2 ** 20;
    let close = (): void => undefined;
    const closed = new Promise<void>((resolve) => {
      close = resolve;
    });
    const url = await receive((request, response) => {
      request.resume();
      response.writeHead(200);
      response.on("close", close);
      const write = () => {
        while (sent < whole && !response.destroyed) {
          sent += 64 * 1024;
          if (!response.write(Buffer.alloc(64 * 1024))) return response.once("drain", write);
        }
        return response.end();
      };
      write();
    });
    expect(await attempt(url)).toEqual({ outcome: "delivered" });
    await closed;
    expect(sent).toBeLessThan(whole);
  });

  it("fails with the code of a connection that is closed at once, or refused", async () => {
    const server = createTcpServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const url = `http://127.0.0.1:${port}`;
    expect(await attempt(url)).toEqual({ outcome: "failed", error: "not sent: ECONNRESET" });
    await new Promise((resolve) => {
      server.close(resolve);
    });
    expect(await attempt(url)).toEqual({ outcome: "failed", error: "not sent: ECONNREFUSED" });
  });

  it("fails with answers that end no exchange", async () => {
    const upgrade = "Upgrade: x\r\nConnection: upgrade\r\n\r\n";
    for (const [answer, error] of [
      [`HTTP/1.1 101 Switching Protocols\r\n${upgrade}`, "answered 101"],
      ["HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "not sent: HPE_INVALID_CONTENT_LENGTH"],
      ["HTTP/1.1 103 Early Hints\r\n\r\n".repeat(17), "not sent: EPROTO"],
    ]) {
      const server = createTcpServer((socket) => {
        socket.on("error", () => undefined).once("data", () => socket.write(answer ?? ""));
      });
      await new Promise<void>((resolve) => {
        server.listen(0, "127.0.0.1", resolve);
      });
      onTestFinished(() => void server.close());
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      expect(await attempt(`http://127.0.0.1:${port}`)).toEqual({ outcome: "failed", error });
    }
  });

  it("fails where the host has no public address", async () => {
    expect(await attempt("http://localhost:1", { isPublic: true })).toEqual({
      outcome: "failed",
      error: "its host has no public address",
    });
  });
});
