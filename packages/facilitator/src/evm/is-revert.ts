import { RpcResponseError } from "@coinslot/chain";

const revertCode = 3;
const revertWords =
  /revert|execution error|evm error|out of ?gas|invalid (opcode|jump)|bad instruction|not activated|stack/i;

/**
 * Whether a node's error means that the execution failed, in the wording of one of the clients, and
 * not the node.
 */
export function isRevert(error: Error): error is RpcResponseError {
  if (!(error instanceof RpcResponseError)) return false;
  return error.code === revertCode || revertWords.test(error.details);
}
