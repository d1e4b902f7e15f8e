import {
  type RpcCall,
  type RpcOutcome,
  type RpcRequester,
  RpcUnavailableError,
} from "@coinslot/chain";
import * as z from "zod";
import type { LedgerPayment } from "../../ledger/payments/ledger-payment.ts";
import { schemeOf } from "../../schemes/registry.ts";

/** A payment whose authorization is asked for. */
type Authorized = Pick<LedgerPayment, "kind" | "authorization">;

/** A contract is not trusted to return one word. */
const wordSchema = z
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
  payments: readonly Authorized[];
  blockNumber: bigint;
}): Promise<(boolean | undefined)[]> {
  const { rpc, payments, blockNumber } = options;
  const block = `0x${blockNumber.toString(16)}`;
  const states = await rpc.requestMany(
    payments.map((payment) => stateCall(payment, block)),
    { minBlock: blockNumber },
  );
  return payments.map((payment, index) => {
    const word = wordOf(states[index]);
    return word === undefined ? undefined : schemeOf(payment).isUsed(payment.authorization, word);
  });
}

/** The call that returns the state of a payment's authorization. */
export function stateCall(payment: Authorized, block: string): RpcCall {
  const { target, callData } = schemeOf(payment).nonceStateCall(payment.authorization);
  return { method: "eth_call", params: [{ to: target, data: callData }, block] };
}

/**
 * The word that a contract returned.
 *
 * @throws RpcUnavailableError where no node has answered
 */
export function wordOf(answer: RpcOutcome | undefined): bigint | undefined {
  if (answer?.ok === false && answer.error instanceof RpcUnavailableError) throw answer.error;
  return wordSchema.safeParse(answer?.ok ? answer.result : undefined).data;
}
