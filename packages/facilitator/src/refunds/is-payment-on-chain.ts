import { RpcError, type RpcRequester } from "@coinslot/chain";
import * as z from "zod";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { findRecipient } from "../ledger/refunds/find-recipient.ts";
import type { RefundedPayment } from "../ledger/refunds/refund-row.ts";
import { schemeOf } from "../schemes/registry.ts";
import type { Claim, Execution } from "../schemes/scheme.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { isConfirmed } from "./is-confirmed.ts";

/** Blocks on each side of a payment's own that are searched. Nodes limit those of one query. */
const nearBlocks = 499n;

/**
 * True if every endpoint that answers has a payment's transfer in a final block. A payment is final
 * by a receipt and a block, which may both be one node's word. Its refund would then give back
 * money that never came. Blocks above an endpoint's head may be made up by another: it is waited
 * for. One that has pruned its logs says nothing.
 *
 * The block is one node's word, too. Where it has no such transfer, those near it are searched.
 */
export async function isPaymentOnChain(
  ledger: LedgerContext,
  settlement: NetworkSettlement,
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
  const { finalAfter } = settlement.network;
  return isConfirmed(settlement, { kind: "payment", of: id }, async (endpoint, head) => {
    if (head.number < block) return "behind";
    const execution =
      (await findBetween(endpoint, claim, { from: block, to: block })) ??
      (await findNear(endpoint, claim, { block, head: head.number }));
    if (execution?.outcome === "unknown") {
      if (execution.fault instanceof RpcError) throw execution.fault;
      return undefined;
    }
    if (execution?.outcome !== "executed") return false;
    const isFinal = BigInt(execution.inclusion.blockNumber + finalAfter) <= head.number;
    return isFinal ? true : "behind";
  });
}

async function findBetween(
  rpc: RpcRequester,
  claim: Claim,
  { from, to }: { from: bigint; to: bigint },
): Promise<Execution | undefined> {
  const search = { rpc, claims: [claim], fromBlock: () => from, toBlock: to };
  return (await schemeOf(claim).findExecutions(search)).get(claim);
}

/** `undefined` also where the node does not answer: the block itself has denied it already. */
async function findNear(
  rpc: RpcRequester,
  claim: Claim,
  { block, head }: { block: bigint; head: bigint },
): Promise<Execution | undefined> {
  const from = block > nearBlocks ? block - nearBlocks : 0n;
  const to = block + nearBlocks < head ? block + nearBlocks : head;
  try {
    return await findBetween(rpc, claim, { from, to });
  } catch (error) {
    if (error instanceof RpcError || error instanceof z.ZodError) return undefined;
    throw error;
  }
}
