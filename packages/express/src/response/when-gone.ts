import type { ServerResponse } from "node:http";

/** Returns whether the client has disconnected before its answer was sent. */
export function isGone(response: ServerResponse): boolean {
  return response.closed || (isQueued(response) && response.req.socket.destroyed);
}

/**
 * Calls `tell`, once, when the client has disconnected.
 *
 * @returns ends the wait.
 */
export function whenGone(response: ServerResponse, tell: () => void): () => void {
  const sources = isQueued(response) ? [response, response.req.socket] : [response];
  for (const source of sources) source.once("close", tell);
  return () => {
    for (const source of sources) source.off("close", tell);
  };
}

/**
 * Returns whether a response waits for others on its connection (pipelining). It has no socket
 * until its turn comes, and emits no event when the connection is closed before.
 */
function isQueued(response: ServerResponse): boolean {
  return response.socket === null && !response.writableFinished;
}
