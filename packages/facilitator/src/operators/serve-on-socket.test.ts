import { readdirSync, statSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { createServer, type RequestListener, request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../logger.ts";
import type { StopChange, StopReport } from "../stops/stop.ts";
import { stopsOperation } from "../stops/stops-operation.ts";
import { askSeller } from "./ask-seller.ts";
import { maxPathBytes } from "./operator-socket.ts";
import { serveOnSocket } from "./serve-on-socket.ts";
import { openTestLedger } from "./testing/open-test-ledger.ts";

const change: StopChange = {
  operation: "set",
  target: { kind: "route", name: "GET /weather" },
  reason: "no forecast",
};
const report: StopReport = { stops: [], isKnown: true, runsOlderProgram: false };

/** The command's way to the seller. */
function ask(url: string, options: { timeoutMs?: number } = {}) {
  return askSeller(url, stopsOperation, change, options);
}

async function createFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-operators-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

/** Serves the operator of a ledger in a new folder. */
async function serve(
  options: { folder?: string; changeStop?: () => Promise<StopReport>; idleMs?: number } = {},
) {
  const { changeStop = async () => report, idleMs = 15_000 } = options;
  const folder = options.folder ?? (await createFolder());
  const warnings: string[] = [];
  const ledgerUrl = `sqlite:${join(folder, "ledger.db")}`;
  const ledger = await openTestLedger("sqlite::memory:");
  const operators = await serveOnSocket(
    {
      operations: [{ ...stopsOperation, access: "write", run: changeStop }],
      context: { ledger, seller: undefined },
      read: (work) => work(ledger),
      logger: { ...silentLogger, warn: (_details, message) => void warnings.push(message) },
    },
    { ledgerUrl, idleMs },
  );
  onTestFinished(() => operators.close());
  return { ...operators, folder, ledgerUrl, warnings, socket: join(folder, "ledger.db.socket") };
}

function post(socketPath: string, path: string, body: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asking = request({ socketPath, path, method: "POST", agent: false }, (response) =>
      text(response).then(() => resolve(response.statusCode), reject),
    );
    asking.once("error", reject).end(body);
  });
}

/** Opens a connection that writes this and then nothing. Returns its end. */
function writeHalf(socket: string, text: string): { closed: Promise<unknown> } {
  const peer = connect(socket);
  peer.on("error", () => undefined);
  peer.write(text);
  const closed = new Promise((resolve) => peer.once("close", resolve));
  // A socket that does not read notices no end.
  peer.resume();
  onTestFinished(() => void peer.destroy());
  return { closed };
}

describe("the operator's socket", () => {
  it("serves its user alone, and leaves nothing behind", async () => {
    const { socket, ledgerUrl, folder, close } = await serve();
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    expect(await ask(ledgerUrl)).toEqual(report);
    await close();
    expect(readdirSync(folder)).toEqual([]);
    expect(await ask(ledgerUrl)).toBeUndefined();
  });

  it("takes the place of what a dead process has left", async () => {
    const folder = await createFolder();
    writeFileSync(join(folder, "ledger.db.socket"), "");
    const { ledgerUrl } = await serve({ folder });
    expect(await ask(ledgerUrl)).toEqual(report);
  });

  it("has the wire of the release that knew stops alone", async () => {
    const { socket, ledgerUrl, close } = await serve();
    expect(await post(socket, "/stops", JSON.stringify(change))).toBe(200);
    await close();
    const seen: unknown[] = [];
    const previous = createServer(async (request, response) => {
      seen.push(request.method, request.url, JSON.parse(await text(request)));
      response.end(JSON.stringify(report));
    });
    await new Promise<void>((resolve) => previous.listen(socket, resolve));
    onTestFinished(() => new Promise<void>((resolve) => previous.close(() => resolve())));
    expect(await ask(ledgerUrl)).toEqual(report);
    expect(seen).toEqual(["POST", "/stops", change]);
  });

  it("refuses what it does not know, and what is too large", async () => {
    const { socket } = await serve();
    expect(await post(socket, "/payments", "{}")).toBe(404);
    expect(await post(socket, "/stops", "{")).toBe(400);
    expect(await post(socket, "/stops", JSON.stringify({ ...change, target: {} }))).toBe(400);
    const reason = "a".repeat(20_000);
    expect(await post(socket, "/stops", JSON.stringify({ ...change, reason }))).toBe(400);
  });

  it("reports a failure in words, without its cause", async () => {
    const changeStop = () => Promise.reject(new Error("disk /var/secret is full"));
    const { ledgerUrl } = await serve({ changeStop });
    await expect(ask(ledgerUrl)).rejects.toThrow(
      "The seller could not do it now: its log says why.",
    );
  });

  it("serves others beside peers with half a request, and ends the peers' connections", async () => {
    const halves = [
      "",
      "POST /st",
      "POST /stops HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{",
    ];
    const { socket, ledgerUrl, close } = await serve();
    const waiting = halves.map((half) => writeHalf(socket, half));
    expect(await ask(ledgerUrl)).toEqual(report);
    await close();
    const impatient = await serve({ idleMs: 20 });
    const ended = halves.map((half) => writeHalf(impatient.socket, half));
    await Promise.all([...waiting, ...ended].map(({ closed }) => closed));
  });

  it("takes neither an endless header nor an endless body", async () => {
    const { socket, ledgerUrl } = await serve();
    const endless = "a".repeat(2 ** 20);
    await writeHalf(socket, `POST /${endless}`).closed;
    await writeHalf(
      socket,
      `POST /stops HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999\r\n\r\n${endless}`,
    ).closed;
    expect(await ask(ledgerUrl)).toEqual(report);
  });

  it("closes although a peer never reads its answer", async () => {
    const reason = "a".repeat(2 ** 20);
    const stop = { kind: "route" as const, name: "GET /a", reason, stoppedAt: 0 };
    let isAsked = () => {};
    const asked = new Promise<void>((resolve) => {
      isAsked = resolve;
    });
    const { socket, folder, close } = await serve({
      changeStop: async () => {
        isAsked();
        return { ...report, stops: [stop] };
      },
    });
    const peer = connect(socket);
    peer.on("error", () => undefined).pause();
    onTestFinished(() => void peer.destroy());
    const body = JSON.stringify(change);
    peer.write(`POST /stops HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    await asked;
    await close();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("takes each path that the system takes", async () => {
    const parent = await createFolder();
    const name = "ledger.db.socket";
    const folder = join(parent, "a".repeat(maxPathBytes - parent.length - name.length - 2));
    await mkdir(folder);
    const { ledgerUrl, socket, warnings } = await serve({ folder });
    expect(Buffer.byteLength(socket)).toBe(maxPathBytes);
    expect(warnings).toEqual([]);
    expect(await ask(ledgerUrl)).toEqual(report);
  });

  it("is reached by a long path from a folder near it", async () => {
    const folder = join(await createFolder(), "a".repeat(200));
    await mkdir(folder);
    const before = process.cwd();
    onTestFinished(() => process.chdir(before));
    process.chdir(dirname(folder));
    await expect(serve({ folder })).resolves.toMatchObject({ warnings: [expect.anything()] });
    process.chdir(folder);
    const { ledgerUrl, close, warnings } = await serve({ folder });
    expect(warnings).toEqual([]);
    expect(await ask(ledgerUrl)).toEqual(report);
    // The process may move to another folder meanwhile.
    process.chdir(before);
    await close();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("is missing, with a warning, where its path is too long for the system", async () => {
    const folder = join(await createFolder(), "a".repeat(200));
    await mkdir(folder);
    const { ledgerUrl, warnings } = await serve({ folder });
    expect(warnings).toEqual([
      "commands of the operator cannot reach this process: it has no socket",
    ]);
    expect(readdirSync(folder)).toEqual([]);
    await expect(ask(ledgerUrl)).rejects.toThrow(/more than 103 bytes/);
  });
});

describe("the command that asks a seller", () => {
  /** Something that listens beside a ledger as a seller does. */
  async function listenAs(answer: RequestListener) {
    const folder = await createFolder();
    const server = createServer(answer);
    const socket = join(folder, "ledger.db.socket");
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    onTestFinished(
      () =>
        new Promise<void>((resolve) => {
          server.close(() => resolve());
          server.closeAllConnections();
        }),
    );
    return `sqlite:${join(folder, "ledger.db")}`;
  }

  it("finds no seller where one ends before its answer, also within it", async () => {
    const ended = await listenAs((request) => void request.socket.destroy());
    expect(await ask(ended)).toBeUndefined();
    const cut = await listenAs((_request, response) => {
      response.writeHead(200, { "Content-Length": 100 });
      response.write("{", () => response.destroy());
    });
    expect(await ask(cut)).toBeUndefined();
  });

  it("reports a seller that does not answer, or answers in a form that it does not know", async () => {
    const frozen = await listenAs(() => undefined);
    await expect(ask(frozen, { timeoutMs: 20 })).rejects.toThrow("is it frozen?");
    for (const body of ["", "{}", "<html>", JSON.stringify({ ...report, stops: {} })]) {
      const odd = await listenAs((_request, response) => void response.end(body));
      await expect(ask(odd)).rejects.toThrow("The seller's answer is malformed");
    }
    const endless = await listenAs((_request, response) => {
      const more = () => void response.write("a".repeat(2 ** 16), () => setImmediate(more));
      more();
    });
    await expect(ask(endless)).rejects.toThrow("The seller's answer is malformed");
  });

  it("passes over switches that only a newer seller knows", async () => {
    const known = { kind: "route", name: "GET /a", reason: "no paper", stoppedAt: 1 } as const;
    const newer = await listenAs((_request, response) => {
      response.end(JSON.stringify({ ...report, stops: [{ ...known, kind: "float" }, known] }));
    });
    expect(await ask(newer)).toEqual({ ...report, stops: [known] });
  });
});
