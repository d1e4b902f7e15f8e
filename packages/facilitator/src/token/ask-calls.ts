import { isRevert, type RpcCall, RpcError, type RpcRequester } from "@coinslot/chain";
import { FacilitatorError, type Hex } from "@coinslot/protocol";
import * as z from "zod";

const hexSchema = z.templateLiteral(["0x", z.string().regex(/^[0-9a-fA-F]*$/)]);

/**
 * Results of many calls in one RPC request, as bytes; `undefined` for a call that reverts.
 *
 * @throws FacilitatorError when the chain is unreachable.
 */
export async function askCalls(
  rpc: RpcRequester,
  calls: readonly RpcCall[],
): Promise<(Hex | undefined)[]> {
  try {
    const outcomes = await rpc.requestMany(calls);
    return outcomes.map((outcome) => {
      if (outcome.ok) return hexSchema.parse(outcome.result);
      // The contract has no such function.
      if (isRevert(outcome.error)) return undefined;
      throw outcome.error;
    });
  } catch (cause) {
    if (!(cause instanceof RpcError || cause instanceof z.ZodError)) throw cause;
    const kind = cause instanceof RpcError ? "unavailable" : "bad_response";
    throw new FacilitatorError("The chain cannot be read at the moment", { kind, cause });
  }
}
