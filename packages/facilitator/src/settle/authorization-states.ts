import type { RpcRequester } from "@coinslot/chain";
import { type AuthorizationId, eip3009Abi } from "@coinslot/protocol";
import { decodeFunctionResult, encodeFunctionData } from "viem";
import * as z from "zod";

const hexSchema = z.templateLiteral(["0x", z.string()]);

/**
 * Whether authorizations were used, or cancelled, at the end of a block (EIP-3009), in their order;
 * `undefined` where the token does not answer.
 *
 * @throws RpcError when the chain cannot be asked, ZodError when it answers rubbish.
 */
export async function readAuthorizationStates(options: {
  rpc: RpcRequester;
  authorizations: readonly AuthorizationId[];
  blockNumber: bigint;
}): Promise<(boolean | undefined)[]> {
  const { rpc, authorizations, blockNumber } = options;
  const states = await rpc.requestMany(
    authorizations.map(({ asset, payer, nonce }) => {
      const args = [payer, nonce] as const;
      const data = encodeFunctionData({
        abi: eip3009Abi,
        functionName: "authorizationState",
        args,
      });
      const block = `0x${blockNumber.toString(16)}`;
      return { method: "eth_call", params: [{ to: asset, data }, block] };
    }),
    { minBlock: blockNumber },
  );
  return states.map((state) => {
    if (!state.ok) return undefined;
    return decodeFunctionResult({
      abi: eip3009Abi,
      functionName: "authorizationState",
      data: hexSchema.parse(state.result),
    });
  });
}
