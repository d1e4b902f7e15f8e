import { isRevert } from "./is-revert.ts";
import type { RpcResponseError } from "./rpc-errors.ts";
import { isRepeatable } from "./rpc-methods.ts";

/** Reads that execute code: a revert is their result. */
const executing = /^(eth_(call|callMany|simulateV1|estimateGas|createAccessList)|debug_trace\w*)$/;

/**
 * Returns whether another node of the chain would return the same error: the execution has
 * reverted. Most others are the node's own: its provider's policy, a missing method, a lost state,
 * a limit of gas or results. An error about a call with effects stands, since that call must not be
 * made twice. So does one about a transaction: its sender decides about other nodes.
 */
export function isChainsWord(error: RpcResponseError): boolean {
  if (!isRepeatable(error.method) || error.method === "eth_sendRawTransaction") return true;
  return executing.test(error.method) && isRevert(error);
}
