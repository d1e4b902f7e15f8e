import {
  type EndpointFailureKind,
  RpcClosedError,
  RpcEndpointError,
  type RpcPool,
  type RpcRequester,
  type RpcUnavailableError,
  sendRawTransaction,
} from "@coinslot/chain";
import { type Hex, keccak256, type PublicClient } from "viem";
import { findNodeAnswer } from "../chains/node-answer.ts";

/**
 * Result of a broadcast.
 *
 * - `accepted`: a node has it.
 * - `rejected`: every node refused it, in these words.
 * - `limited`: no node took it, and a host refused it by HTTP 429, 401 or 403, or JSON-RPC's
 *   equivalent. That host has read the bytes, and may broadcast them later. Sent again, they may be
 *   accepted.
 * - `unknown`: a node may have it.
 * - `unsent`: no node has it.
 */
export type BroadcastResult =
  | { outcome: "accepted" | "unknown" }
  | { outcome: "rejected" | "limited"; details: string }
  | { outcome: "unsent"; cause: unknown };

export type Broadcast = (raw: Hex) => Promise<BroadcastResult>;

/**
 * Broadcasts through a pool, which knows whether an endpoint that failed may have seen the
 * transaction. After one node's answer, the bytes go to every node by itself. A node that refuses
 * or accepts them may lie, and keep them to execute them later.
 */
export function broadcastThroughPool(pool: RpcPool): Broadcast {
  return async (raw) => {
    const first = await broadcastTo(pool, raw);
    if (pool.endpoints.length === 1) return first;
    if (first.outcome === "unsent" || first.outcome === "limited") return first;
    const sent = Promise.all(pool.endpoints.map((node) => broadcastTo(node, raw)));
    if (first.outcome !== "rejected") {
      // No answer of theirs changes this outcome, and one may take its time.
      sent.catch(() => undefined);
      return first;
    }
    const results = await sent;
    if (results.some(({ outcome }) => outcome === "accepted")) return { outcome: "accepted" };
    const refusals = results.flatMap((each) => ("details" in each ? [each.details] : []));
    // A node that was not reached may hold it by way of another one.
    if (refusals.length < results.length) return { outcome: "unknown" };
    const isLimited = results.some(({ outcome }) => outcome === "limited");
    const details = [...new Set([first.details, ...refusals])].join("; ");
    return { outcome: isLimited ? "limited" : "rejected", details };
  };
}

async function broadcastTo(node: RpcRequester, raw: Hex): Promise<BroadcastResult> {
  const result = await sendRawTransaction(node, raw).catch((error: unknown) => {
    // Unknown: the request may have left before the pool was closed.
    if (error instanceof RpcClosedError) return { outcome: "unknown" as const };
    throw error;
  });
  switch (result.outcome) {
    case "accepted":
    case "unknown":
      return { outcome: result.outcome };
    case "rejected":
      return { outcome: "rejected", details: result.error.details };
    case "unsent":
      return isLimit(result.error)
        ? { outcome: "limited", details: result.error.message }
        : { outcome: "unsent", cause: result.error };
  }
}

const limits: ReadonlySet<EndpointFailureKind> = new Set(["rate-limited", "unauthorized"]);

function isLimit({ failures }: RpcUnavailableError): boolean {
  return failures.some(
    (failure) => failure instanceof RpcEndpointError && limits.has(failure.kind),
  );
}

/**
 * Broadcasts through a viem client. An error that is no answer of a node proves nothing. There is
 * no retry, so a node that refuses has not taken it before. A transport over several nodes hides
 * the results of the others.
 */
export function broadcastThroughClient(client: PublicClient): Broadcast {
  const asksOne = transportsOfOneNode.has(client.transport.type);
  return async (raw) => {
    const call = { method: "eth_sendRawTransaction" as const, params: [raw] satisfies [Hex] };
    try {
      const hash = await client.request(call, { retryCount: 0 });
      return { outcome: hash === keccak256(raw) ? "accepted" : "unknown" };
    } catch (error) {
      const answer = findNodeAnswer(error);
      if (answer === undefined || !asksOne) return { outcome: "unknown" };
      return { outcome: "rejected", details: answer.details };
    }
  };
}

/** Types of viem's transports. */
const transportsOfOneNode = new Set(["http", "webSocket", "ipc"]);
