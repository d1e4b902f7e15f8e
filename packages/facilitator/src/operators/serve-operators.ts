import { once } from "node:events";
import { chmodSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { dirname, join } from "node:path";
import { ConfigurationError } from "@coinslot/protocol";
import type { Logger } from "../logger.ts";
import { type StopChange, type StopReport, stopChangeSchema } from "../stops/stop.ts";
import { operatorSocketOf, shortenSocket } from "./operator-socket.ts";

/** What a process does for its operator's commands. */
export interface OperatorActions {
  changeStop(change: StopChange): Promise<StopReport>;
}

const maxBodyBytes = 16 * 2 ** 10;
/** Silence after which a connection ends: a peer may neither finish its request nor read. */
const defaultIdleMs = 15_000;

/**
 * Serves the commands of the operator beside a SQLite ledger. Its holder alone writes to the file,
 * so a command hands its change over: `POST /stops`, in JSON. The caller holds the ledger's lock,
 * so a socket that is there was left by a dead process. Where none can be made, selling goes on,
 * and the log has a warning.
 */
export async function serveOperators(options: {
  ledgerUrl: string;
  actions: OperatorActions;
  logger: Logger;
  idleMs?: number | undefined;
}): Promise<{ close(): Promise<void> }> {
  const { ledgerUrl, actions, logger, idleMs = defaultIdleMs } = options;
  const socket = operatorSocketOf(ledgerUrl);
  if (socket === undefined) return { close: async () => undefined };
  const server = createServer((request, response) => {
    answer(request, actions).then(
      ({ status, body }) => send(response, status, body),
      (err: unknown) => {
        logger.error({ err }, "a command of the operator failed");
        send(response, 503, { message: "The seller could not do it now: its log says why." });
      },
    );
  });
  server.setTimeout(idleMs);
  // A program that does not close its facilitator may end all the same.
  server.unref();
  try {
    await listen(server, socket);
  } catch (err) {
    logger.warn({ err }, "commands of the operator cannot reach this process: it has no socket");
    return { close: async () => undefined };
  }
  return {
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
      if (process.platform !== "win32") rmSync(socket, { force: true });
    },
  };
}

/**
 * Listens, for the user of this process alone. A socket takes a mode only once it is bound, so it
 * is bound in a private folder, and moved to its place with its mode. The private path is no longer
 * than the final one, so that the system takes both.
 */
async function listen(server: Server, socket: string): Promise<void> {
  if (process.platform === "win32") {
    server.listen({ path: socket, exclusive: true });
    await once(server, "listening");
    return;
  }
  const folder = mkdtempSync(`${dirname(socket)}/.`);
  try {
    const hidden = join(folder, "s");
    server.listen({ path: shortenSocket(hidden), exclusive: true });
    await once(server, "listening");
    chmodSync(hidden, 0o600);
    renameSync(hidden, socket);
  } catch (error) {
    server.close();
    throw error;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Answer {
  status: number;
  body: object;
}

async function answer(request: IncomingMessage, actions: OperatorActions): Promise<Answer> {
  if (request.method !== "POST" || request.url !== "/stops") {
    return { status: 404, body: { message: "This release of the seller does not know that." } };
  }
  const change = stopChangeSchema.safeParse(await readJson(request));
  if (!change.success) return { status: 400, body: { message: "The change is malformed." } };
  try {
    return { status: 200, body: await actions.changeStop(change.data) };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return { status: 400, body: { message: error.message } };
  }
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Left undestroyed, so that the refusal of a body that is too large can go out.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    if (!(chunk instanceof Uint8Array)) return undefined;
    size += chunk.length;
    if (size > maxBodyBytes) return undefined;
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return undefined;
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "Content-Type": "application/json", Connection: "close" });
  response.end(JSON.stringify(body));
}
