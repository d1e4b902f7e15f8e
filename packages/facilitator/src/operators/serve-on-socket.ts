import { once } from "node:events";
import { chmodSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { dirname, join } from "node:path";
import { answerOperator, type ServedOperations } from "./answer-operator.ts";
import { operatorSocketOf, shortenSocket } from "./operator-socket.ts";

/**
 * Serves the commands of the operator beside a SQLite ledger. Its holder alone writes to the file,
 * so a command hands its operation over: `POST /stops`, in JSON. The caller holds the ledger's
 * lock, so a socket that is there was left by a dead process. Where none can be made, selling goes
 * on, and the log has a warning.
 */
export async function serveOnSocket(
  served: ServedOperations,
  { ledgerUrl, idleMs }: { ledgerUrl: string; idleMs: number },
): Promise<{ close(): Promise<void> }> {
  const socket = operatorSocketOf(ledgerUrl);
  if (socket === undefined) return { close: async () => undefined };
  const server = createServer((request, response) => {
    void answerOperator(served, { via: "socket", actor: "socket" }, request, response);
  });
  server.setTimeout(idleMs);
  // A program that does not close its facilitator may end all the same.
  server.unref();
  try {
    await listen(server, socket);
  } catch (err) {
    served.logger.warn(
      { err },
      "commands of the operator cannot reach this process: it has no socket",
    );
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
 * Listens, for the user of this process alone. A socket takes a mode only once it is bound. So it
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
