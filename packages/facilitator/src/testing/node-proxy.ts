import { json } from "node:stream/consumers";
import { type Listening, listen } from "@coinslot/devnet";
import { type Hex, parseTransaction } from "viem";
import * as z from "zod";

const callSchema = z.looseObject({
  id: z.union([z.number(), z.string(), z.null()]),
  method: z.string(),
  params: z.array(z.unknown()).default([]),
});
const answerSchema = z.union([
  z.object({ result: z.unknown() }),
  z.object({
    error: z.object({ code: z.number(), message: z.string(), data: z.string().optional() }),
  }),
]);

/** One JSON-RPC call. */
export type NodeCall = z.infer<typeof callSchema>;
/** A node's answer. */
export type NodeAnswer = z.infer<typeof answerSchema>;

/**
 * A proxy between a facilitator and its node. It may forward the request, and return the node's
 * answer or another one; `undefined` breaks the connection.
 */
export type Intercept = (
  call: NodeCall,
  ask: () => Promise<NodeAnswer>,
) => Promise<NodeAnswer | undefined>;

/** A JSON-RPC server in front of a node. */
export type NodeProxy = Listening;

/** Starts a server that answers by `intercept`, on a free loopback port. */
export async function startNodeProxy(upstream: string, intercept: Intercept): Promise<NodeProxy> {
  async function ask(call: NodeCall): Promise<NodeAnswer> {
    const response = await fetch(upstream, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(call),
    });
    // An error comes without a result, so it is looked for first.
    const answer = z.looseObject({}).parse(await response.json());
    return answerSchema.parse("error" in answer ? { error: answer.error } : answer);
  }

  return listen(async (request, response) => {
    try {
      const body = await json(request);
      const calls = z.array(callSchema).parse(Array.isArray(body) ? body : [body]);
      const answers = await Promise.all(calls.map((call) => intercept(call, () => ask(call))));
      if (answers.includes(undefined)) return void response.destroy();
      const sent = answers.map((answer, index) => ({
        jsonrpc: "2.0",
        id: calls[index]?.id,
        ...answer,
      }));
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(Array.isArray(body) ? sent : sent[0]));
    } catch {
      // The facilitator has left, or the node is gone: a proxy breaks the connection.
      response.destroy();
    }
  });
}

/** The broadcasts per nonce, as their calls. */
export function callsByNonce(broadcasts: Iterable<Hex>): Map<number, Set<string>> {
  const calls = new Map<number, Set<string>>();
  for (const raw of broadcasts) {
    const { nonce = 0, to, data } = parseTransaction(raw);
    calls.set(nonce, (calls.get(nonce) ?? new Set()).add(`${to} ${data}`));
  }
  return calls;
}

/** A node that refuses logs, until `tellLogs`. */
export async function startNodeWithoutLogs(
  upstream: string,
): Promise<NodeProxy & { tellLogs: () => void }> {
  let isMute = true;
  const proxy = await startNodeProxy(upstream, async ({ method }, ask) =>
    isMute && method === "eth_getLogs"
      ? { error: { code: -32005, message: "query returned too much" } }
      : ask(),
  );
  return {
    ...proxy,
    tellLogs: () => {
      isMute = false;
    },
  };
}
