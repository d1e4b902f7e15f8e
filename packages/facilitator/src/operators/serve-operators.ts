import type { ServedOperations } from "./answer-operator.ts";
import { operations } from "./registry.ts";
import { serveOnSocket } from "./serve-on-socket.ts";
import { type OperatorListener, serveOverHttp } from "./serve-over-http.ts";

/** Silence after which a connection ends: a peer may neither finish its request nor read. */
const defaultIdleMs = 15_000;

/**
 * Serves the operator's commands: on the socket beside a SQLite ledger, and over HTTP where a
 * listener is configured.
 */
export async function serveOperators(
  options: Omit<ServedOperations, "operations"> & {
    ledgerUrl: string;
    listener?: OperatorListener | undefined;
    idleMs?: number | undefined;
  },
): Promise<{ close(): Promise<void> }> {
  const { ledgerUrl, listener, idleMs = defaultIdleMs, ...others } = options;
  const served = { ...others, operations };
  const socket = await serveOnSocket(served, { ledgerUrl, idleMs });
  const http = listener && (await serveOverHttp(served, { listener, idleMs }));
  return {
    async close() {
      await Promise.all([socket.close(), http?.close()]);
    },
  };
}
