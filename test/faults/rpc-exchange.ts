import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import * as z from "zod";

const callSchema = z.looseObject({
  id: z.union([z.number(), z.string(), z.null()]),
  method: z.string(),
  params: z.array(z.unknown()).default([]),
});
const answerSchema = z.looseObject({ id: z.union([z.number(), z.string(), z.null()]) });

/** One JSON-RPC call, as it came. */
export type RpcCall = z.infer<typeof callSchema>;
/** One JSON-RPC answer, as the node gave it. */
export type RpcAnswer = z.infer<typeof answerSchema>;

/** One HTTP request with its calls, and the possible reactions to it. */
export interface RpcExchange {
  readonly calls: readonly RpcCall[];
  /** Asks the node, with these calls or with others in their place. */
  forward(calls?: readonly RpcCall[]): Promise<RpcAnswer[]>;
  /** The text of an honest answer. */
  format(answers: readonly unknown[]): string;
  /** Answers with these bytes. */
  reply(body: string, options?: { status?: number; headers?: Record<string, string> }): void;
  /** Breaks the connection without an answer. */
  hangUp(): void;
}

/** Reads an HTTP request of a JSON-RPC client, a batch or a single call. Rejects if it is none. */
export async function readRpcExchange(options: {
  upstream: string;
  request: IncomingMessage;
  response: ServerResponse;
}): Promise<RpcExchange> {
  const { upstream, request, response } = options;
  const json: unknown = JSON.parse(await text(request));
  const isBatch = Array.isArray(json);
  const calls = z.array(callSchema).parse(isBatch ? json : [json]);

  return {
    calls,
    async forward(changed = calls) {
      const answer = await fetch(upstream, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(isBatch ? changed : changed[0]),
      });
      const answered: unknown = await answer.json();
      return z.array(answerSchema).parse(isBatch ? answered : [answered]);
    },
    format: (answers) => JSON.stringify(isBatch ? answers : answers[0]),
    reply(body, { status = 200, headers = {} } = {}) {
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(body);
    },
    hangUp: () => void response.destroy(),
  };
}
