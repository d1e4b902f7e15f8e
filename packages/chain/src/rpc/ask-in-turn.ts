import { isChainsWord } from "./is-chains-word.ts";
import type { RpcEndpoint } from "./rpc-endpoint.ts";
import type { RpcCall } from "./rpc-envelope.ts";
import {
  type EndpointProblem,
  RpcEndpointError,
  RpcResponseError,
  type RpcUnavailableError,
} from "./rpc-errors.ts";
import { hasForm, isRepeatable } from "./rpc-methods.ts";
import type { RpcOutcome } from "./rpc-requester.ts";

export interface AskInTurnOptions {
  calls: readonly RpcCall[];
  /** The endpoints to try, in order; `passOver` reports why one was skipped. */
  endpoints: (
    passOver: (problem: EndpointProblem) => void,
  ) => AsyncIterable<RpcEndpoint | "all-tried">;
  timeoutMs: number;
  signal: AbortSignal | undefined;
  /** Makes the error of a call without an answer. */
  unavailable: (subject: string, failures: readonly EndpointProblem[]) => RpcUnavailableError;
}

interface Pending {
  call: RpcCall;
  index: number;
  failures: RpcEndpointError[];
  /**
   * Answers of nodes that say nothing of the chain: errors of their own, and malformed results. One
   * is the outcome where no endpoint has a better answer.
   */
  refusals: {
    endpoint: RpcEndpoint;
    error: RpcResponseError | RpcEndpointError;
    result?: unknown;
  }[];
}

/**
 * Failover: asks one endpoint after the other, each with the calls that have no answer yet. A
 * node's error is the answer where it is the chain's word, or where each healthy endpoint returns
 * one: then the first one's. So is a malformed result, where no endpoint has another answer. A call
 * that must not be repeated moves on only when it was certainly not sent.
 */
export async function askInTurn(options: AskInTurnOptions): Promise<RpcOutcome[]> {
  const { calls, unavailable } = options;
  if (calls.length === 0) return [];
  const outcomes = new Map<number, RpcOutcome>();
  const passedOver: EndpointProblem[] = [];
  let pending = calls.map((call, index): Pending => ({ call, index, failures: [], refusals: [] }));
  for await (const endpoint of options.endpoints((problem) => passedOver.push(problem))) {
    if (endpoint === "all-tried") {
      pending = pending.filter((item) => !settleRefused(item, outcomes));
      if (pending.length === 0) break;
      continue;
    }
    const asked = pending;
    const answers = await endpoint.send(
      asked.map(({ call }) => call),
      options,
    );
    pending = asked.filter((item, position) => {
      const { call, index, failures, refusals } = item;
      const answer = answers[position];
      if (!answer) return true;
      if (answer.ok && !hasForm(call, answer.result)) {
        const error = malformed(endpoint, call);
        return refusals.push({ endpoint, error, result: answer.result }) > 0;
      }
      if (answer.ok) {
        for (const refusal of refusals) refusal.endpoint.outvoted(refusal.error);
        outcomes.set(index, { endpoint: endpoint.name.number, failures, ...answer });
        return false;
      }
      const { error } = answer;
      if (error instanceof RpcResponseError) {
        if (!isChainsWord(error)) return refusals.push({ error, endpoint }) > 0;
        outcomes.set(index, { ok: false, error, failures });
        return false;
      }
      failures.push(error);
      if (isRepeatable(call.method) || !error.maybeSent) return true;
      outcomes.set(index, { ok: false, error: unavailable(call.method, failures), failures });
      return false;
    });
    if (pending.length === 0) break;
  }
  for (const item of pending) {
    const { call, index, failures } = item;
    if (settleRefused(item, outcomes)) continue;
    outcomes.set(index, {
      ok: false,
      error: unavailable(call.method, [...passedOver, ...failures]),
      failures,
    });
  }
  return calls.flatMap((_, index) => outcomes.get(index) ?? []);
}

function malformed({ name }: RpcEndpoint, { method }: RpcCall): RpcEndpointError {
  const details = `a malformed result of ${method}`;
  return new RpcEndpointError({ name, kind: "malformed", details, maybeSent: true });
}

/**
 * Takes the first node's error for the answer, else its malformed result: no other node has a
 * better one. An error goes first, as its caller may know what to do about it.
 */
function settleRefused(
  { index, failures, refusals }: Pending,
  outcomes: Map<number, RpcOutcome>,
): boolean {
  const refusal = refusals.find(({ error }) => error instanceof RpcResponseError) ?? refusals[0];
  if (refusal === undefined) return false;
  const { error, result, endpoint } = refusal;
  outcomes.set(
    index,
    error instanceof RpcResponseError
      ? { ok: false, error, failures }
      : { ok: true, result, endpoint: endpoint.name.number, failures },
  );
  return true;
}
