import type { RpcRequester } from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { findRecipient } from "../ledger/refunds/find-recipient.ts";
import type { RefundedPayment } from "../ledger/refunds/refund-row.ts";
import { schemeOf } from "../schemes/registry.ts";
import type { Claim, Execution } from "../schemes/scheme.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { isConfirmed } from "./is-confirmed.ts";
import { readUses } from "./read-chain.ts";
import { readReceiptAt } from "./read-receipt-at.ts";

/**
 * True if every endpoint that answers has a payment's transfer in a final block. A payment is final
 * by a receipt and a block, which may both be one node's word. Its refund would then give back
 * money that never came.
 *
 * An endpoint has the transfer in its own receipt of the payment's transaction, in whatever block.
 * Its nonce is used there. Else one node may have named another transaction: the logs of the
 * payment's block are read. That block may be made up. One above an endpoint's head is waited for.
 */
export async function isPaymentOnChain(
  ledger: LedgerContext,
  settlement: NetworkSettlement,
  payment: RefundedPayment,
): Promise<boolean> {
  const { id, authorization, value, blockNumber, transactionHash } = payment;
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
  const { finalAfter } = settlement.network;
  return isConfirmed(settlement, { kind: "payment", of: id }, async (endpoint, head) => {
    const at = { hash: transactionHash, head: head.number };
    let execution = await findInTransaction(endpoint, claim, at);
    if (execution === undefined && head.number < block) return "behind";
    execution ??= await findInBlock(endpoint, claim, block);
    if (execution?.outcome === "unknown") {
      if (execution.fault !== undefined) throw execution.fault;
      return undefined;
    }
    if (execution?.outcome !== "executed") return false;
    const isFinal = BigInt(execution.inclusion.blockNumber + finalAfter) <= head.number;
    return isFinal ? true : "behind";
  });
}

/** A node may return the receipt of a block that has left the chain: the state is asked, too. */
async function findInTransaction(
  rpc: RpcRequester,
  claim: Claim,
  { hash, head }: { hash: Hex | undefined; head: bigint },
): Promise<Execution | undefined> {
  const inclusion = hash && (await readReceiptAt(rpc, hash));
  if (!inclusion) return undefined;
  const outcome = schemeOf(claim).readOutcomes(inclusion.logs, [claim]).get(claim);
  if (outcome !== "executed") return undefined;
  const use = { accounts: [claim.id.payer], blockNumber: head };
  const { usedBy } = await readUses(rpc, claim.id, use);
  return usedBy.length > 0 ? { outcome, inclusion } : undefined;
}

async function findInBlock(
  rpc: RpcRequester,
  claim: Claim,
  block: bigint,
): Promise<Execution | undefined> {
  const search = { rpc, claims: [claim], fromBlock: () => block, toBlock: block };
  return (await schemeOf(claim).findExecutions(search)).get(claim);
}
