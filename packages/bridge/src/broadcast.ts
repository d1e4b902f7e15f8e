import { type RpcPool, sendRawTransaction } from "@coinslot/chain";
import type { Hex, PublicClient } from "viem";
import { findNodeAnswer } from "./node-answer.ts";

/**
 * What became of a signed transaction.
 *
 * - `accepted`: a node has it.
 * - `rejected`: a node refused it, in these words.
 * - `unknown`: a node may have it.
 * - `unsent`: no node has it.
 */
export type BroadcastResult =
  | { outcome: "accepted" | "unknown" }
  | { outcome: "rejected"; details: string }
  | { outcome: "unsent"; cause: unknown };

export type Broadcast = (raw: Hex) => Promise<BroadcastResult>;

/** Broadcasts through a pool, which knows whether an endpoint that failed may have seen the transaction. */
export function broadcastThroughPool(pool: RpcPool): Broadcast {
  return async (raw) => {
    const result = await sendRawTransaction(pool, raw);
    switch (result.outcome) {
      case "accepted":
      case "unknown":
        return { outcome: result.outcome };
      case "rejected":
        return { outcome: "rejected", details: result.error.details };
      case "unsent":
        return { outcome: "unsent", cause: result.error };
    }
  };
}

/** Broadcasts through a viem client: what is no answer of a node may mean anything. */
export function broadcastThroughClient(client: PublicClient): Broadcast {
  return async (raw) => {
    try {
      await client.sendRawTransaction({ serializedTransaction: raw });
      return { outcome: "accepted" };
    } catch (error) {
      const answer = findNodeAnswer(error);
      return answer === undefined
        ? { outcome: "unknown" }
        : { outcome: "rejected", details: answer.details };
    }
  };
}
