import type { RpcRequester } from "@coinslot/chain";
import { type AuthorizationId, eip3009Abi } from "@coinslot/protocol";
import { encodeFunctionData } from "viem";
import * as z from "zod";

/** A token is not trusted to answer with a word, or with a boolean in it. */
const boolSchema = z
  .string()
  .regex(/^0x0{63}[01]$/)
  .transform((word) => word.endsWith("1"));

/**
 * Whether authorizations were used, or cancelled, at the end of a block (EIP-3009), in their order;
 * `undefined` where the token does not answer, or answers rubbish.
 *
 * @throws RpcError when the chain cannot be asked.
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
  return states.map((state) => (state.ok ? boolSchema.safeParse(state.result).data : undefined));
}
