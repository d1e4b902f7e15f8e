import { RpcResponseError } from "./rpc-errors.ts";

const revertCode = 3;
const revertWords =
  /revert|execution error|evm error|out of ?gas|invalid (opcode|jump)|bad instruction|not activated|stack/i;

/**
 * Returns whether a node's error means that the execution failed, and not the node, in a client's
 * wording.
 */
export function isRevert(error: Error): error is RpcResponseError {
  if (!(error instanceof RpcResponseError)) return false;
  return error.code === revertCode || revertWords.test(error.details);
}
