import { type RpcRequester, RpcUnavailableError } from "@coinslot/chain";
import * as z from "zod";
import type { LedgerPayment } from "../../ledger/payments/ledger-payment.ts";
import { schemeOf } from "../../schemes/registry.ts";

/** A contract is not trusted to return one word. */
export const wordSchema = z
  .string()
  .regex(/^0x[0-9a-f]{64}$/i)
  .transform(BigInt);

/**
 * Reads for each payment whether its authorization was used or cancelled at the end of a block.
 * `undefined` where the contract returns nothing, or malformed data.
 *
 * @throws RpcError when the chain is unreachable, also for one of them: that is no token's answer.
 */
export async function readAuthorizationStates(options: {
  rpc: RpcRequester;
  payments: readonly Pick<LedgerPayment, "kind" | "authorization">[];
  blockNumber: bigint;
}): Promise<(boolean | undefined)[]> {
  const { rpc, payments, blockNumber } = options;
  const block = `0x${blockNumber.toString(16)}`;
  const states = await rpc.requestMany(
    payments.map((payment) => {
      const { target, callData } = schemeOf(payment).nonceStateCall(payment.authorization);
      return { method: "eth_call", params: [{ to: target, data: callData }, block] };
    }),
    { minBlock: blockNumber },
  );
  return payments.map((payment, index) => {
    const state = states[index];
    if (state?.ok === false && state.error instanceof RpcUnavailableError) throw state.error;
    const word = wordSchema.safeParse(state?.ok ? state.result : undefined).data;
    return word === undefined ? undefined : schemeOf(payment).isUsed(payment.authorization, word);
  });
}
