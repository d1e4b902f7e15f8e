import { BaseError, RpcRequestError } from "viem";

/** The error that a node returned; `undefined` where none has answered. */
export function findNodeAnswer(error: unknown): RpcRequestError | undefined {
  if (!(error instanceof BaseError)) return undefined;
  const answer = error.walk((each) => each instanceof RpcRequestError);
  return answer instanceof RpcRequestError ? answer : undefined;
}
