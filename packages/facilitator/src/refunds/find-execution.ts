import { RpcError, type RpcRequester } from "@coinslot/chain";
import type { Address, Hex } from "@coinslot/protocol";
import * as z from "zod";
import { readReceipt, receiptCall } from "../evm/transaction-receipt.ts";
import type { Inclusion } from "../ledger/payments/ledger-payment.ts";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import { schemeOf } from "../schemes/registry.ts";
import type { SettlementNetwork } from "../settle/context.ts";
import { type Electorate, isConfirmed } from "./is-confirmed.ts";

/** The chain's events about the nonce of a refund. */
export type RefundExecution =
  /** It moved this amount to the payer. */
  | { outcome: "moved"; value: bigint; inclusion: Inclusion }
  /** Used, and no `Transfer` to the payer stands beside that: a person has to look. */
  | { outcome: "misdirected"; inclusion: Inclusion }
  /** Its signer has cancelled it. */
  | { outcome: "cancelled"; blockNumber: bigint }
  /** Used, and not found down to this block, or unreadable by a node's `fault`. */
  | { outcome: "unknown"; searchedTo: bigint; fault?: Error | undefined };

/** An execution whose events were found. */
type KnownExecution = Exclude<RefundExecution, { outcome: "unknown" }>;

/**
 * Looks for the `Transfer` of a used nonce, with whatever amount, in the newest of some blocks.
 *
 * @param options `fromBlock`: that of the payment. A refund of it comes later.
 * @throws RpcError when the chain is unreachable
 */
export async function findRefundExecution(
  { rpc }: Pick<SettlementNetwork, "rpc">,
  row: RefundRow,
  options: {
    account: Address;
    value: bigint;
    fromBlock: bigint;
    toBlock: bigint;
    maxBlocks: bigint;
  },
): Promise<RefundExecution> {
  const { account, value, fromBlock, toBlock, maxBlocks } = options;
  const oldest = toBlock > maxBlocks ? toBlock - maxBlocks : 0n;
  const searchedTo = fromBlock > oldest ? fromBlock : oldest;
  const range = { account, value, fromBlock: searchedTo, toBlock };
  return (await explainUse(rpc, row, range)) ?? { outcome: "unknown", searchedTo };
}

/**
 * True if each endpoint that answers has the same events about a refund's nonce, in their block.
 * They say that nothing is to be sent any more, and how much was.
 */
export function isExecutionOnChain(
  electorate: Electorate,
  row: RefundRow,
  options: { account: Address; value: bigint; execution: KnownExecution },
): Promise<boolean> {
  const { account, value, execution } = options;
  const block =
    execution.outcome === "cancelled"
      ? execution.blockNumber
      : BigInt(execution.inclusion.blockNumber);
  const content = (each: KnownExecution) =>
    `${each.outcome} ${each.outcome === "moved" ? each.value : ""}`;
  return isConfirmed(electorate, { kind: "events", of: row.id }, async (endpoint, head) => {
    if (head.number < block) return "behind";
    const range = { account, value, fromBlock: block, toBlock: block };
    const seen = await explainUse(endpoint, row, range);
    if (seen?.outcome === "unknown") {
      // Awaited: its receipt may come, and another endpoint may lie.
      if (seen.fault !== undefined) throw seen.fault;
      return undefined;
    }
    return seen !== undefined && content(seen) === content(execution);
  });
}

/** @returns `undefined` where the blocks have no event about the nonce */
async function explainUse(
  rpc: RpcRequester,
  row: RefundRow,
  range: { account: Address; value: bigint; fromBlock: bigint; toBlock: bigint },
): Promise<RefundExecution | undefined> {
  const { account, value, fromBlock, toBlock } = range;
  const scheme = schemeOf({ kind: "eip3009" });
  const id = { network: row.network, asset: row.asset, payer: account, nonce: row.nonce };
  const claim = {
    kind: scheme.kind,
    id,
    authorization: {
      from: account,
      to: row.payer,
      value,
      validAfter: 0n,
      validBefore: 0n,
      nonce: row.nonce,
    },
    signature: "0x" as Hex,
  };
  const unknown = { outcome: "unknown", searchedTo: fromBlock } as const;
  const found = await scheme.findExecutions({
    rpc,
    claims: [claim],
    fromBlock: () => fromBlock,
    toBlock,
  });
  const execution = found.get(claim);
  if (execution === undefined) return undefined;
  if (execution.outcome === "unknown") {
    const { fault, isUnsearched } = execution;
    if (fault instanceof RpcError || (fault && isUnsearched)) throw fault;
    return { ...unknown, fault };
  }
  if (execution.outcome === "executed") {
    return { outcome: "moved", value, inclusion: execution.inclusion };
  }
  const { transactionHash } = execution;
  if (transactionHash === undefined) return unknown;
  const [answer] = await rpc.requestMany([receiptCall(transactionHash)], {
    minBlock: execution.blockNumber,
  });
  const { receipt, fault } = readReceipt(transactionHash, answer);
  if (fault instanceof RpcError) throw fault;
  if (receipt === undefined) return { ...unknown, fault: fault ?? noReceipt() };
  if (!execution.isUse) return { outcome: "cancelled", blockNumber: execution.blockNumber };
  const { blockNumber, blockHash } = receipt;
  const inclusion = { transactionHash, blockNumber, blockHash };
  const moved = scheme.readTransfer(receipt.logs, id);
  // A token that calls its recipient may have let it put a Transfer of nothing in the place.
  const isOurs = moved !== undefined && moved.to === row.payer && moved.value > 0n;
  if (!isOurs) return { outcome: "misdirected", inclusion };
  return { outcome: "moved", value: moved.value, inclusion };
}

function noReceipt(): Error {
  const message = "A node returned a log, and no receipt that has it";
  return new z.ZodError([{ code: "custom", path: [], message }]);
}
