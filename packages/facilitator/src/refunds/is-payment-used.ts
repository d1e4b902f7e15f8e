import { RpcError } from "@coinslot/chain";
import type { RefundedPayment } from "../ledger/refunds/refund-row.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { readAuthorizationStates } from "../settle/evidence/authorization-states.ts";

/**
 * True if every endpoint that answers shows a payment's authorization as used at the end of a
 * block. A payment is final by a receipt and a block, which may both be one node's word. Its refund
 * would then give back money that never came. An endpoint without the block says nothing.
 */
export async function isPaymentUsed(
  { network: { rpc } }: NetworkSettlement,
  { authorization }: Pick<RefundedPayment, "authorization">,
  blockNumber: bigint,
): Promise<boolean> {
  const payments = [{ kind: "eip3009" as const, authorization }];
  const votes = await Promise.all(
    rpc.endpoints.map(async (endpoint) => {
      try {
        const [isUsed] = await readAuthorizationStates({ rpc: endpoint, payments, blockNumber });
        return isUsed;
      } catch (error) {
        if (error instanceof RpcError) return undefined;
        throw error;
      }
    }),
  );
  return votes.includes(true) && !votes.includes(false);
}
