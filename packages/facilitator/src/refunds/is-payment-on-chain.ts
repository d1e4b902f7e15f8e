import type { LedgerContext } from "../ledger/ledger-context.ts";
import { findRecipient } from "../ledger/refunds/find-recipient.ts";
import type { RefundedPayment } from "../ledger/refunds/refund-row.ts";
import { schemeOf } from "../schemes/registry.ts";
import type { Claim } from "../schemes/scheme.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { isConfirmed } from "./is-confirmed.ts";

/**
 * True if every endpoint that answers has a payment's transfer in its block. A payment is final by
 * a receipt and a block, which may both be one node's word. Its refund would then give back money
 * that never came. Blocks above an endpoint's head may be made up by another: it is waited for.
 * One that has pruned its logs says nothing.
 */
export async function isPaymentOnChain(
  ledger: LedgerContext,
  { network: { rpc } }: NetworkSettlement,
  payment: RefundedPayment,
): Promise<boolean> {
  const { id, authorization, value, blockNumber } = payment;
  const payTo = await findRecipient(ledger, id);
  if (blockNumber === undefined || payTo === undefined) return false;
  const { payer, nonce } = authorization;
  const claim: Claim = {
    kind: "eip3009",
    id: authorization,
    authorization: { from: payer, to: payTo, value, validAfter: 0n, validBefore: 0n, nonce },
    signature: "0x",
  };
  const block = BigInt(blockNumber);
  return isConfirmed({ rpc, now: ledger.now }, async (endpoint, head) => {
    if (head.number < block) return "behind";
    const search = { rpc: endpoint, claims: [claim], fromBlock: () => block, toBlock: block };
    const outcome = (await schemeOf(claim).findExecutions(search)).get(claim)?.outcome;
    return outcome === "unknown" ? undefined : outcome === "executed";
  });
}
