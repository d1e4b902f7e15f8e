import { text } from "node:stream/consumers";
import { listen } from "@coinslot/devnet";
import * as z from "zod";

const callSchema = z.object({
  id: z.number(),
  method: z.string(),
  params: z.array(z.unknown()).default([]),
});
const answerSchema = z.looseObject({ id: z.number() });

export type RpcProxyCall = z.infer<typeof callSchema>;

/**
 * Fate of a call: the node's answer, one to other parameters, another one, or one without the node;
 * an error, or a broken connection.
 */
export type Verdict =
  | "forward"
  | "lose answer"
  | "drop"
  | RpcRefusal
  | { params: unknown[] }
  | { answer: (given: unknown) => unknown }
  | { result: unknown };

interface RpcRefusal {
  error: { code: number; message: string; data?: string };
  /** True if the node gets the call all the same. */
  isTaken?: true;
}

/** A real HTTP server between a bridge and a real node. */
export interface RpcProxy {
  url: string;
  /** Decides on the calls from now on. */
  judge(judge: (call: RpcProxyCall) => Verdict): void;
  /** Every call so far. */
  calls: readonly RpcProxyCall[];
  close(): Promise<void>;
}

export async function startRpcProxy(upstream: string): Promise<RpcProxy> {
  let judge: (call: RpcProxyCall) => Verdict = () => "forward";
  const calls: RpcProxyCall[] = [];

  async function forward(call: RpcProxyCall) {
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ jsonrpc: "2.0", ...call });
    const answer = await fetch(upstream, { method: "POST", headers, body });
    return answerSchema.parse(await answer.json());
  }

  async function answer(call: RpcProxyCall) {
    calls.push(call);
    const verdict = judge(call);
    if (verdict === "drop") throw new Error("dropped");
    if (typeof verdict === "string") {
      const given = await forward(call);
      if (verdict === "lose answer") throw new Error("lost");
      return given;
    }
    if ("result" in verdict) return { jsonrpc: "2.0", id: call.id, result: verdict.result };
    if ("params" in verdict) return forward({ ...call, params: verdict.params });
    if ("answer" in verdict) {
      const given = await forward(call);
      return { ...given, result: verdict.answer(given.result) };
    }
    if (verdict.isTaken) await forward(call);
    return { jsonrpc: "2.0", id: call.id, error: verdict.error };
  }

  const { url, close } = await listen(async (request, response) => {
    try {
      const json: unknown = JSON.parse(await text(request));
      const answers = Array.isArray(json)
        ? await Promise.all(z.array(callSchema).parse(json).map(answer))
        : await answer(callSchema.parse(json));
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answers));
    } catch {
      response.destroy();
    }
  });
  return {
    url: `${url}/secret-key-in-the-path`,
    judge(next) {
      judge = next;
    },
    calls,
    close,
  };
}
