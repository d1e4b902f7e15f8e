import type { IncomingMessage, ServerResponse } from "node:http";
import { type Listening, listen } from "@coinslot/devnet";

/** An event as it arrived. */
export interface ReceivedEvent {
  path: string;
  headers: Record<string, string>;
  body: string;
  event: { id: string; type: string; timestamp: string; details: Record<string, unknown> };
}

/** A server that receives events. */
export interface EventReceiver extends Listening {
  received: ReceivedEvent[];
  /** Number of requests that have come, read or not. */
  requests(): number;
  types(): string[];
}

/** Starts a receiver, which answers 204 by default. */
export async function openReceiver(
  answer: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) => {
    response.writeHead(204).end();
  },
): Promise<EventReceiver> {
  const received: ReceivedEvent[] = [];
  let requests = 0;
  const listening = await listen((request, response) => {
    requests += 1;
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const headers = Object.fromEntries(
        Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
      );
      received.push({ path: request.url ?? "", headers, body, event: JSON.parse(body) });
      answer(request, response);
    });
  });
  return {
    ...listening,
    received,
    requests: () => requests,
    types: () => received.map(({ event }) => event.type),
  };
}
