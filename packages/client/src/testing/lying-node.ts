import * as z from "zod";
import { type Listening, listen } from "./listen.ts";

const callSchema = z.looseObject({
  id: z.number(),
  method: z.string(),
  params: z.unknown().optional(),
});

/** A call that a node was asked for. */
export interface NodeCall {
  method: string;
  params: unknown;
}

/**
 * A node that forwards calls to another one, and returns other results where `lie` has one.
 *
 * @param lie gets the call and the true result, and returns `undefined` for the truth, or a promise
 */
export function startLyingNode(
  upstream: string,
  lie: (call: NodeCall, truth: unknown) => unknown,
): Promise<Listening> {
  return listen(async ({ body }, response) => {
    const call = callSchema.parse(JSON.parse(body));
    const answer = await fetch(upstream, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    const truth = z.looseObject({ result: z.unknown().optional() }).parse(await answer.json());
    const result = await lie({ method: call.method, params: call.params }, truth.result);
    const returned = result === undefined ? truth : { jsonrpc: "2.0", id: call.id, result };
    response.setHeader("content-type", "application/json").end(JSON.stringify(returned));
  });
}
