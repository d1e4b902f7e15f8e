import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { Cycle } from "../cycles/cycle.ts";
import type { CycleBoard } from "../cycles/cycle-board.ts";
import { describeSteps, type Step } from "../cycles/describe-steps.ts";
import { type CycleSummary, summarise } from "../cycles/summarise.ts";
import { type Commands, writeCommands } from "../cycles/write-commands.ts";
import { maxRecordingLength, readRecording, writeRecording } from "../recording/recording.ts";
import { ReplayRefusedError } from "../replay/local-chain.ts";
import { createEventStreams } from "./event-stream.ts";
import { findForeignness } from "./guard-request.ts";
import { readShell } from "./shell.ts";

/** A cycle with all that the page shows of it. */
export interface CycleDetails {
  summary: CycleSummary;
  cycle: Cycle;
  steps: Step[];
  commands: Commands;
}

/** Facts of the inspector that stay. */
export interface InspectorFacts {
  seller: string;
  proxyUrl: string;
  canReplay: boolean;
}

/** A running server of the page and its API. */
export interface PageServer {
  url: string;
  close(): Promise<void>;
}

/** Protections of every answer. Nothing comes from elsewhere, and nothing frames the page. */
const protections = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
};

interface PageOptions {
  board: Pick<CycleBoard, "cycles" | "find" | "counts" | "subscribe">;
  /** 0: any free port. */
  port: number;
  assets: URL;
  facts: InspectorFacts;
  /** Replays a cycle against the seller; its result is a list of lines. */
  replay: ((cycle: Cycle) => Promise<unknown>) | undefined;
}

/**
 * Serves the page on a listener of its own, on a loopback address: its origin is not that of the
 * proxied seller.
 */
export async function startPageServer(options: PageOptions): Promise<PageServer> {
  const { board, assets } = options;
  const shell = readShell(assets);
  const streams = createEventStreams(board);
  let port = options.port;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(protections)) response.setHeader(name, value);
    const foreignness = findForeignness(request, port);
    if (foreignness !== undefined) return sendJson(response, 403, { error: foreignness });
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    const file = shell.files.get(pathname);
    if (request.method === "GET" && file !== undefined) {
      response.setHeader("Cache-Control", "public, max-age=31536000, immutable");
      response.writeHead(200, { "Content-Type": file.type }).end(file.body);
      return;
    }
    response.setHeader("Cache-Control", "no-store");
    if (request.method === "GET" && pathname === "/") {
      response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" }).end(shell.html);
      return;
    }
    if (request.method === "GET" && pathname === "/api/events") {
      if (!streams.open(response)) sendJson(response, 503, { error: "Too many pages are open." });
      return;
    }
    await answerApi(request, response, { ...options, pathname });
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      const message = error instanceof Error ? error.message : "It failed.";
      if (response.headersSent) response.destroy();
      else sendJson(response, isExpected(error) ? 400 : 500, { error: message });
    });
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (typeof address === "object" && address !== null) port = address.port;
  return {
    url: `http://127.0.0.1:${port}/`,
    close: () =>
      new Promise((resolve) => {
        streams.close();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answerApi(
  request: IncomingMessage,
  response: ServerResponse,
  { board, facts, replay, pathname }: PageOptions & { pathname: string },
): Promise<void> {
  const { method } = request;
  if (method === "GET" && pathname === "/api/facts") return sendJson(response, 200, facts);
  if (method === "GET" && pathname === "/api/recording") {
    const name = "coinslot-recording.json";
    response.setHeader("Content-Disposition", `attachment; filename="${name}"`);
    response.writeHead(200, { "Content-Type": "application/json" });
    response.end(writeRecording(board.cycles(), Date.now()));
    return;
  }
  const id = /^\/api\/cycles\/([1-9]\d{0,9})$/.exec(pathname)?.[1];
  if (method === "GET" && id !== undefined) {
    const cycle = board.find(Number(id));
    if (cycle === undefined) return sendJson(response, 404, { error: "This cycle is gone." });
    return sendJson(response, 200, describe(cycle, facts));
  }
  if (method === "POST" && pathname === "/api/open") {
    const { cycles } = readRecording(await readBody(request));
    return sendJson(response, 200, { cycles: cycles.map((cycle) => describe(cycle, facts)) });
  }
  if (method === "POST" && pathname === "/api/replay" && replay !== undefined) {
    const [cycle] = readRecording(await readBody(request)).cycles;
    if (cycle === undefined) throw new TypeError("The recording has no cycle.");
    return sendJson(response, 200, await replay(cycle));
  }
  sendJson(response, 404, { error: "There is nothing here." });
}

function describe(cycle: Cycle, { proxyUrl }: InspectorFacts): CycleDetails {
  const steps = describeSteps(cycle);
  return { summary: summarise(cycle), cycle, steps, commands: writeCommands(cycle, proxyUrl) };
}

/** Errors whose message is for the person at the page. */
function isExpected(error: unknown): boolean {
  return error instanceof TypeError || error instanceof ReplayRefusedError;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const length = Number(request.headers["content-length"] ?? Number.NaN);
  if (!(length <= maxRecordingLength)) throw new TypeError("The recording is too large.");
  return text(request);
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.setHeader("Cache-Control", "no-store");
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(value));
}
