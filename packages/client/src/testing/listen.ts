import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { type Listening, listen as listenTo } from "@coinslot/devnet";

export type { Listening };

/** A request with its body read. */
export interface ReceivedRequest {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  body: string;
}

/**
 * Serves whole requests on a free loopback port until `close`, which also ends open connections.
 */
export function listen(
  handle: (request: ReceivedRequest, response: ServerResponse) => void | Promise<void>,
): Promise<Listening> {
  return listenTo(async (incoming, response) => {
    const { method = "", url = "", headers } = incoming;
    await handle({ method, url, headers, body: await text(incoming) }, response);
  });
}
