import type { ServerResponse } from "node:http";

/** Whether nobody is there any more to take an answer that has not been sent. */
export function isGone(response: ServerResponse): boolean {
  return response.closed || (isQueued(response) && response.req.socket.destroyed);
}

/**
 * Tells, once, that nobody is there any more to take an answer.
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
 * Whether a response waits for others on its connection (pipelining). It has no socket until its turn
 * comes, and Node does not tell it when the connection is closed before.
 */
function isQueued(response: ServerResponse): boolean {
  return response.socket === null && !response.writableFinished;
}
