import { once } from "node:events";
import { Agent, get, type IncomingMessage, type RequestListener } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { startHttpServer } from "./http-server.ts";

const variables = { host: "HOST", port: "PORT" };

async function start(listener: RequestListener, options: { requestMs?: number } = {}) {
  const address = { host: "127.0.0.1", port: 0, variables };
  const server = await startHttpServer(listener, { ...address, ...options });
  onTestFinished(() => server.close());
  return server;
}

/** A connection that sends this, and reads nothing. */
async function open(url: string, sent = ""): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(sent);
  return socket;
}

async function secondsOf(work: Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work;
  return (performance.now() - started) / 1000;
}

test("a stopping server ends connections that keep alive, are silent, or are half a request", async () => {
  const server = await start((_request, response) => response.end("served"));
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const [answer]: IncomingMessage[] = await once(get(server.url, { agent }), "response");
  expect(answer && (await text(answer))).toBe("served");
  const silent = await open(server.url);
  const half = await open(server.url, "GET / HTTP/1.1\r\nHost: here\r\n");
  const ends = Promise.all([silent, half].map((socket) => once(socket, "close")));

  expect(await secondsOf(server.close())).toBeLessThan(4);
  await ends;
});

test("a stopping server answers the request that it works on, and one that comes a moment later", async () => {
  const finishing: (() => void)[] = [];
  const server = await start((request, response) => {
    if (request.url === "/at-once") response.end("at once");
    else finishing.push(() => response.end("slow"));
  });
  const slow = await open(server.url, "GET /slow HTTP/1.1\r\nHost: here\r\n\r\n");
  const early = await open(server.url);
  await expect.poll(() => finishing.length).toBe(1);
  const closing = server.close();
  early.write("GET /at-once HTTP/1.1\r\nHost: here\r\n\r\n");
  expect(await text(early)).toContain("at once");
  for (const finish of finishing) finish();
  expect(await text(slow)).toContain("slow");
  await closing;
});

test("a request that does not come to its end in time is cut, and a slow answer is not", async () => {
  const finishing: (() => void)[] = [];
  const server = await start(
    (request, response) => {
      request.resume();
      request.on("end", () => finishing.push(() => response.end("slow")));
    },
    { requestMs: 600 },
  );
  const head = "POST / HTTP/1.1\r\nHost: here\r\n";
  const slow = await open(server.url, `${head}Content-Length: 0\r\nConnection: close\r\n\r\n`);
  await expect.poll(() => finishing.length).toBe(1);
  const parts = [
    "",
    head,
    `${head}Content-Length: 9\r\n\r\npart`,
    `${head}Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n`,
  ];
  const cut = await Promise.all(parts.map((part) => open(server.url, part)));
  await Promise.all(cut.map((socket) => text(socket)));
  for (const finish of finishing) finish();
  expect(await text(slow)).toContain("slow");
});
