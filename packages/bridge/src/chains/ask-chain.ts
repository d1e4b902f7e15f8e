import { RpcClosedError, RpcError } from "@coinslot/chain";
import { BaseError } from "viem";
import { BridgeError } from "../bridge-error.ts";
import { describeRevert, findRevertData } from "./revert-reason.ts";

/**
 * Awaits a chain's answer, and wraps its failure in a BridgeError. `signal` keeps its own reason.
 *
 * @param subject ends "No RPC endpoint returned …", or "The contract reverted when asked for …"
 * @throws BridgeError `refused_by_contract` or `rpc_unavailable`
 */
export async function askChain<T>(
  subject: string,
  answer: Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    signal?.throwIfAborted();
    throw toBridgeError(error, subject);
  }
}

/**
 * Returns whether a chain was not asked because the bridge is closed. A retry would fail as well.
 */
export function isClosed(error: unknown): boolean {
  return error instanceof BridgeError && error.cause instanceof RpcClosedError;
}

function toBridgeError(error: unknown, subject: string): unknown {
  if (error instanceof BridgeError) return error;
  const revertData = findRevertData(error);
  if (revertData !== undefined) {
    const reason = describeRevert(revertData);
    const text = `The contract reverted when asked for ${subject}: ${reason}`;
    return new BridgeError("refused_by_contract", text);
  }
  // Errors of a pool hide URLs. Those of any other client hold them, and are dropped.
  const cause = error instanceof BaseError ? error.walk((each) => each instanceof RpcError) : error;
  if (cause instanceof RpcError) {
    return new BridgeError("rpc_unavailable", cause.message, { cause });
  }
  const [why, known] =
    error instanceof BaseError ? [error.name] : ["its answer is malformed", error];
  return new BridgeError("rpc_unavailable", `No RPC endpoint returned ${subject}: ${why}`, {
    cause: known,
  });
}
