import * as z from "zod";
import { type Fault, honest } from "./fault-server.ts";

const answerSchema = z.looseObject({ id: z.number() });

/** Nothing but an HTTP status, as a proxy in front of a node sends it. */
export function answerStatus(status: number, headers: Record<string, string> = {}): Fault {
  return ({ response }) => {
    response.writeHead(status, headers);
    response.end("no");
  };
}

/** A JSON-RPC error with HTTP status 200. */
export function answerError(code: number, message: string, data?: unknown): Fault {
  return ({ calls, isBatch, reply }) => {
    const errors = calls.map(({ id }) => ({ jsonrpc: "2.0", id, error: { code, message, data } }));
    reply(isBatch ? errors : errors[0]);
  };
}

/** True answers, except for calls of one method. */
export function answerMethod(method: string, result: unknown): Fault {
  return (exchange) => {
    const [call] = exchange.calls;
    if (exchange.isBatch || call?.method !== method) return honest(exchange);
    exchange.reply({ jsonrpc: "2.0", id: call.id, result });
  };
}

/** Each answer is changed on its way. */
export function changeAnswers(
  change: (answer: { id: number }, call: { method?: string | undefined }) => unknown,
): Fault {
  return async (exchange) => {
    const answer = await exchange.forward();
    const changed = z
      .array(answerSchema)
      .parse(exchange.isBatch ? answer : [answer])
      .map((each) => change(each, exchange.calls.find(({ id }) => id === each.id) ?? {}));
    exchange.reply(exchange.isBatch ? changed : changed[0]);
  };
}

/** No batch longer than `limit`, refused as most servers do. */
export function limitBatch(limit: number): Fault {
  return (exchange) => {
    if (exchange.calls.length <= limit) return honest(exchange);
    exchange.reply({
      jsonrpc: "2.0",
      id: null,
      error: { code: -32600, message: "batch too large" },
    });
  };
}

/** The node executes the request, and the connection breaks before its answer arrives. */
export const loseAnswer: Fault = async ({ forward, response }) => {
  await forward();
  response.destroy();
};

/** Every fault after which another endpoint has to be asked, and how it is called. */
export const brokenAnswers: Record<string, { fault: Fault; kind: string }> = {
  "answers 500": { fault: answerStatus(500), kind: "http" },
  "answers 503": { fault: answerStatus(503), kind: "http" },
  "answers 404": { fault: answerStatus(404), kind: "http" },
  "answers 400 with a text": { fault: answerStatus(400), kind: "http" },
  "answers 401": { fault: answerStatus(401), kind: "unauthorized" },
  "answers 403": { fault: answerStatus(403), kind: "unauthorized" },
  "answers 429": { fault: answerStatus(429), kind: "rate-limited" },
  "answers 429 with Retry-After": {
    fault: answerStatus(429, { "retry-after": "1" }),
    kind: "rate-limited",
  },
  "limits the rate with error 429": {
    fault: answerError(429, "too many requests"),
    kind: "rate-limited",
  },
  "limits the rate with error -32005": {
    fault: answerError(-32005, "limit exceeded"),
    kind: "rate-limited",
  },
  redirects: { fault: answerStatus(302, { location: "http://127.0.0.1:9/" }), kind: "http" },
  "resets the connection": { fault: ({ response }) => void response.destroy(), kind: "connection" },
  "loses the answer": { fault: loseAnswer, kind: "connection" },
  "never answers": { fault: () => undefined, kind: "timeout" },
  "stops in the middle of the body": {
    fault({ response }) {
      response.writeHead(200, { "content-type": "application/json" });
      response.write('{"jsonrpc":"2.0",');
    },
    kind: "timeout",
  },
  "breaks off in the middle of the body": {
    fault({ response }) {
      response.writeHead(200, { "content-length": "1000" });
      response.write('{"jsonrpc":"2.0",', () => response.destroy());
    },
    kind: "connection",
  },
  "sends truncated JSON": {
    fault: ({ response }) => void response.end('{"jsonrpc":"2.0","id":1,"res'),
    kind: "malformed",
  },
  "sends HTML with status 200": {
    fault: ({ response }) => void response.end("<html><body>Welcome</body></html>"),
    kind: "malformed",
  },
  "sends nothing": { fault: ({ response }) => void response.end(), kind: "malformed" },
  "answers another id": {
    fault: changeAnswers((answer) => ({ ...answer, id: answer.id + 1000 })),
    kind: "malformed",
  },
  "leaves out the result": {
    fault: changeAnswers(({ id }) => ({ jsonrpc: "2.0", id })),
    kind: "malformed",
  },
  "sends more than the limit": {
    fault: ({ response }) => void response.end(" ".repeat(2_000_000)),
    kind: "too-large",
  },
};
