import * as z from "zod";

/** A JSON-RPC call. The encoder assigns its id. */
export interface RpcCall {
  method: string;
  params?: readonly unknown[];
  /**
   * Returns whether a read's result has a form that its caller can read. Where it has not, the next
   * endpoint is asked. Where no endpoint has a better answer, the caller gets the first one's
   * result, and parses it in vain. Contracts must not decide it: their data is no node's fault.
   * Default: the form of the method's results, where they are plain hex.
   */
  isAnswer?: (result: unknown) => boolean;
}

export interface JsonRpcError {
  code: number;
  message: string;
  data?: unknown;
}

/** The answer to one call: `undefined` where the node left it out. */
export type JsonRpcAnswer = { result: unknown } | { error: JsonRpcError } | undefined;

export type JsonRpcReply =
  /** One answer per call, in the order of the calls. */
  | { kind: "answers"; answers: JsonRpcAnswer[] }
  /**
   * A batch was answered by one error without an id: this server takes no batches, or none this
   * long.
   */
  | { kind: "batch-refused"; error: JsonRpcError }
  | { kind: "malformed" };

// JSON-RPC 2.0, section 5. `jsonrpc` is not checked: some servers omit it, and nothing depends on
// it.
const errorSchema = z.object({
  code: z.coerce.number().int(),
  message: z.string().catch(""),
  data: z.unknown().optional(),
});
const answerSchema = z.union([
  z.object({ id: z.unknown().optional(), error: errorSchema }),
  // `result` may be null, but it must be there.
  z
    .object({ id: z.unknown().optional(), result: z.unknown() })
    .refine((answer) => "result" in answer && answer.result !== undefined),
]);

/**
 * Writes calls as one JSON text: an object for one, a batch for more. Ids count up from `firstId`.
 */
export function encodeCalls(calls: readonly RpcCall[], firstId: number): string {
  const requests = calls.map((call, index) => ({
    jsonrpc: "2.0",
    id: firstId + index,
    method: call.method,
    params: call.params ?? [],
  }));
  return JSON.stringify(requests.length === 1 ? requests[0] : requests);
}

/** Reads the reply to `encodeCalls(calls, firstId)`. Answers are matched by id, never by place. */
export function decodeReply(text: string, count: number, firstId: number): JsonRpcReply {
  const json = parseJson(text);
  const items: readonly unknown[] = Array.isArray(json) ? json : [json];
  if (count > 1 && items.length === 1) {
    const refusal = z.object({ id: z.null().optional(), error: errorSchema }).safeParse(items[0]);
    if (refusal.success) return { kind: "batch-refused", error: refusal.data.error };
  }
  const answers: JsonRpcAnswer[] = new Array<JsonRpcAnswer>(count).fill(undefined);
  for (const item of items) {
    const parsed = answerSchema.safeParse(item);
    if (!parsed.success) continue;
    const index = Number(parsed.data.id) - firstId;
    // An error without an id belongs to the only call there is: the server could not read the id.
    if (count === 1 && parsed.data.id == null && "error" in parsed.data) answers[0] = parsed.data;
    else if (Number.isInteger(index) && index >= 0 && index < count) answers[index] = parsed.data;
  }
  if (answers.every((answer) => answer === undefined)) return { kind: "malformed" };
  return { kind: "answers", answers };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
