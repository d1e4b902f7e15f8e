import { type Hash, type Hex, keccak256 } from "viem";
import { RpcResponseError, RpcUnavailableError } from "./rpc-errors.ts";
import type { RpcRequester, RpcRequestOptions } from "./rpc-requester.ts";

/**
 * Outcome of a broadcast. Every outcome carries the hash, which follows from the bytes alone.
 *
 * - `accepted`: a node took it into its pool. It may still be dropped or replaced.
 * - `rejected`: the first node that saw it refused it with an error. The error may still mean that
 *   the transaction is known or mined already. A caller that knows the nonce must read it.
 * - `unknown`: some node may have it. An answer was lost, or one node refused it after another may
 *   have taken it. Look it up by its hash, or send the same bytes again.
 * - `unsent`: it is certain that no node has seen it.
 */
export type BroadcastOutcome =
  | { outcome: "accepted"; hash: Hash; endpoint: number }
  | { outcome: "rejected"; hash: Hash; error: RpcResponseError }
  | { outcome: "unknown"; hash: Hash; error: RpcResponseError | RpcUnavailableError }
  | { outcome: "unsent"; hash: Hash; error: RpcUnavailableError };

/**
 * Broadcasts a signed transaction with `eth_sendRawTransaction`. When an endpoint gives no answer,
 * the next one receives the same bytes. That is safe, since they are one transaction on every node.
 * Throws only `RpcClosedError`, or the reason of an abort.
 */
export async function sendRawTransaction(
  rpc: RpcRequester,
  rawTransaction: Hex,
  options: Omit<RpcRequestOptions, "minBlock"> & {
    /** Hash of the same bytes, if known: a large transaction takes a while to hash. */
    hash?: Hash | undefined;
  } = {},
): Promise<BroadcastOutcome> {
  const { hash = keccak256(rawTransaction), ...requestOptions } = options;
  const call = { method: "eth_sendRawTransaction", params: [rawTransaction] };
  const [outcome] = await rpc.requestMany([call], requestOptions);
  if (!outcome) throw new TypeError("requestMany gave no outcome for its only call");
  if (outcome.ok) {
    const { result, endpoint } = outcome;
    if (result === hash) return { outcome: "accepted", hash, endpoint };
    // The node accepted a transaction, but returned another hash.
    const subject = "eth_sendRawTransaction with the hash of the sent transaction";
    const { chainId } = rpc;
    const error = new RpcUnavailableError({ chainId, subject, failures: [], retryAfterMs: 0 });
    return { outcome: "unknown", hash, error };
  }
  const { error } = outcome;
  if (outcome.failures.some((failure) => failure.maybeSent))
    return { outcome: "unknown", hash, error };
  if (error instanceof RpcResponseError) return { outcome: "rejected", hash, error };
  return { outcome: "unsent", hash, error };
}
