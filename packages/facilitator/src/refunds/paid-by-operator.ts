import { type Address, type Hex, toLowerHex } from "@coinslot/protocol";
import type { Transaction } from "kysely";
import { readPlainTransfers } from "../evm/plain-transfers.ts";
import type { TransactionReceipt } from "../evm/transaction-receipt.ts";
import { isNumberUnused } from "../ledger/refunds/create-refund.ts";
import { type RefundChange, writeRefund } from "../ledger/refunds/move-refund.ts";
import type { Refund } from "../ledger/refunds/refund.ts";
import { RefundError } from "../ledger/refunds/refund-error.ts";
import {
  findRefundedPayment,
  findRefundsOf,
  type RefundRow,
  toRefund,
} from "../ledger/refunds/refund-row.ts";
import { endedRefundStates } from "../ledger/refunds-schema.ts";
import type { LedgerSchema } from "../ledger/schema.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { askEach, isConfirmed } from "./is-confirmed.ts";
import { isOver } from "./is-over.ts";
import { readUses } from "./read-chain.ts";
import { readLogsOf } from "./read-logs-of.ts";
import { readReceiptAt } from "./read-receipt-at.ts";
import { later, looks, type RefundsContext } from "./refunds-context.ts";

/**
 * Takes the operator's transaction as a refund that is `manual`. The chain is asked: the
 * transaction has moved exactly its amount of its token to its payer. From then on its depth is
 * followed.
 *
 * The racers are other refunds that name the same transaction. One decides at a time, under a key:
 * each takes a `Transfer` of its own.
 *
 * @throws RefundError where the transaction does not prove it, RpcError, ZodError
 */
export async function takeOperatorsTransaction(
  refunds: RefundsContext,
  { row, hash }: { row: RefundRow; hash: Hex },
): Promise<void> {
  const { ledger } = refunds.context;
  const transactionHash = toLowerHex(hash);
  const isRepeated = row.cause === "operator_paid" && row.transaction_hash === transactionHash;
  if (isRepeated) return;
  if (row.state !== "manual" || !(await isWithoutSignature(refunds, row))) {
    throw new RefundError("wrong_state", `The refund is ${row.state}, and not yours to send`);
  }
  const settlement = refunds.settlements.get(row.network);
  if (settlement === undefined) throw notPaid(`No chain of this seller is ${row.network}`);
  const proof = await findProof(refunds, { row, settlement, hash: transactionHash });
  if (proof === undefined) {
    throw notPaid("The transaction has not moved this amount of the token to the payer");
  }
  const { receipt, transfers } = proof;
  const change = later(refunds, 0, {
    state: "sent",
    cause: "operator_paid",
    float: transfers[0].from,
    transaction_hash: transactionHash,
    block_number: receipt.blockNumber,
    block_hash: receipt.blockHash,
  });
  const isMoved = await ledger.write(async (transaction) => {
    await ledger.dialect.lockKey(transaction, "coinslot:operator-refunds");
    if ((await countOthers(transaction, row, transactionHash)) >= transfers.length) {
      throw notPaid("Another refund, or a transaction of the relayers, has this transfer already");
    }
    return writeRefund(transaction, row, change);
  });
  if (!isMoved) throw new RefundError("wrong_state", "The refund has changed meanwhile");
}

/**
 * Follows a refund by the operator's transaction. It is final once each endpoint that answers has
 * it in a final block: by its receipt, or by its logs. It is `manual` again once none has it for as
 * many blocks. One node's word, or a short reorganisation, does not do that: its operator would pay
 * twice.
 */
export async function followOperatorsTransaction(
  refunds: RefundsContext,
  row: RefundRow,
  settlement: NetworkSettlement,
): Promise<RefundChange> {
  const { transaction_hash: hash, state, cause } = row;
  if (hash === null) return later(refunds, looks.waiting, { state, cause });
  const { ledger } = refunds.context;
  const { network } = settlement;
  const { finalAfter } = network;
  const head = Number((await network.watcher.read(0)).number);
  const { block_number: block, block_hash: blockHash } = row;
  // Any block that a node has named may be made up. So one without a receipt is missing since the
  // head of the first look that found none.
  const missingSince = blockHash === null ? Math.min(block ?? head, head) : head;
  const places: Pick<TransactionReceipt, "blockNumber" | "blockHash">[] = [];
  let isMissed = false;
  const vote = await askEach(settlement, { kind: "receipt", of: row.id }, async (endpoint, at) => {
    const receipt = await readReceiptAt(endpoint, hash);
    const isPaid = receipt !== undefined && transfersOf(refunds, row, receipt).length > 0;
    if (isPaid) places.push(receipt);
    let paidIn = isPaid ? receipt.blockNumber : undefined;
    if (receipt === undefined && block !== null && blockHash !== null && at.number >= block) {
      const logs = await readLogsOf(endpoint, { asset: row.asset, hash, blockNumber: block });
      if (transfersOf(refunds, row, { isSuccess: true, logs }).length > 0) {
        paidIn = block;
        places.push({ blockNumber: block, blockHash });
      }
    }
    // One that has not come to a block of the chain has not missed the transaction there.
    isMissed ||= paidIn === undefined && !(block !== null && block <= head && at.number < block);
    const since = paidIn ?? missingSince;
    return at.number < BigInt(since + finalAfter) ? "behind" : paidIn !== undefined;
  });
  if (vote === "denied") {
    return later(refunds, looks.rare, {
      state: "manual",
      // One with a signed form was paid by hand where its nonce cannot pay it any more.
      cause: row.valid_before === null ? "no_eip3009" : "executed_elsewhere",
      ...{ float: null, transaction_hash: null, block_number: null, block_hash: null },
      confirmed_at: null,
    });
  }
  // The lowest block: any height above the chain's may be made up.
  const [place] = places.sort((a, b) => a.blockNumber - b.blockNumber);
  if (place === undefined) {
    // Endpoints without an answer have not missed it: by its block, one may yet show its logs.
    const missing = isMissed ? { block_number: missingSince, block_hash: null } : {};
    return later(refunds, looks.waiting, { state, cause, ...missing });
  }
  const inBlock = {
    cause,
    block_number: place.blockNumber,
    block_hash: place.blockHash,
  };
  const confirmedAt = row.confirmed_at ?? ledger.now();
  if (vote === "confirmed") {
    const times = { confirmed_at: confirmedAt, final_at: ledger.now() };
    return later(refunds, 0, { state: "final", ...inBlock, ...times });
  }
  const value = ledger.dialect.amount.decode(row.amount);
  const depth = head - place.blockNumber;
  const pause = depth < finalAfter ? looks.soon : looks.waiting;
  return depth >= network.serveAfter({ value })
    ? later(refunds, pause, { state: "confirmed", ...inBlock, confirmed_at: confirmedAt })
    : later(refunds, pause, { state: "sent", ...inBlock, confirmed_at: null });
}

/**
 * Ends a refund that moves no money: its operator has decided so.
 *
 * @throws RefundError where a signature of it may be executed, it is over, or another one waits
 */
export async function cancelRefund(refunds: RefundsContext, row: RefundRow): Promise<Refund> {
  const { ledger } = refunds.context;
  if (row.state === "void" && row.cause === "cancelled") return toRefund(row, ledger.dialect);
  if (!(await isWithoutSignature(refunds, row))) {
    throw new RefundError(
      "wrong_state",
      `The refund is ${row.state}, and its signature may be executed: it cannot be cancelled`,
    );
  }
  const change = { state: "void", cause: "cancelled", next_at: ledger.now() } as const;
  const isVoid = await ledger.write(async (transaction) => {
    const reads = { db: transaction, dialect: ledger.dialect };
    // No other one begins meanwhile.
    await findRefundedPayment(reads, row.payment_id, { lock: true });
    const all = await findRefundsOf(reads, row.payment_id);
    const next = all.find(
      ({ n, state }) => n > row.n && !endedRefundStates.some((ended) => ended === state),
    );
    // It would be paid behind an unused number: see `freeNumber` in `create-refund.ts`.
    if (next !== undefined && isNumberUnused(row)) {
      throw new RefundError(
        "wrong_state",
        `Refund ${next.id} of the same payment waits for this one: cancel that one first`,
      );
    }
    return writeRefund(transaction, row, change);
  });
  if (!isVoid) throw new RefundError("wrong_state", "The refund has changed meanwhile");
  return toRefund({ ...row, ...change }, ledger.dialect);
}

/**
 * No form of it was signed, or asked for elsewhere; or its nonce is used up without paying it. Or
 * its token lacks EIP-3009, and its last form is over at depth, at each endpoint that answers. One
 * that shows the form as executed denies it: endpoints may have failed at the look that found none.
 */
async function isWithoutSignature(
  { context: { ledger }, settlements }: RefundsContext,
  row: RefundRow,
): Promise<boolean> {
  const { id, network, float, state, valid_before, cause } = row;
  if (state === "sent" || state === "confirmed" || state === "final" || state === "void") {
    return false;
  }
  if (valid_before === null) return true;
  if (state !== "manual") return false;
  if (cause !== "no_eip3009") return cause === "executed_elsewhere";
  const settlement = settlements.get(network);
  if (settlement === undefined) return false;
  const validBefore = ledger.dialect.amount.decode(valid_before);
  return isConfirmed(settlement, { kind: "no use", of: id }, async (endpoint, head) => {
    const accounts = float === null ? [] : [float];
    const { usedBy } = await readUses(endpoint, row, { accounts, blockNumber: head.number });
    if (usedBy.length > 0) return false;
    const height = head.number - BigInt(settlement.network.finalAfter);
    return isOver(ledger, { endpoint, height, validBefore });
  });
}

/** A receipt, with the transfers that are a refund's. */
interface Proof {
  receipt: TransactionReceipt;
  transfers: [{ from: Address }, ...{ from: Address }[]];
}

/**
 * The receipt of a transaction that has moved a refund's amount to its payer; at every endpoint,
 * where the first one has none. Another receipt of one of them proves nothing.
 *
 * @throws RpcError, ZodError where no endpoint has it, and one did not say so
 */
async function findProof(
  refunds: RefundsContext,
  { row, settlement, hash }: { row: RefundRow; settlement: NetworkSettlement; hash: Hex },
): Promise<Proof | undefined> {
  let fault: unknown;
  const { rpc } = settlement.network;
  for (const node of [rpc, ...(rpc.endpoints.length > 1 ? rpc.endpoints : [])]) {
    try {
      const receipt = await readReceiptAt(node, hash);
      const [first, ...more] = receipt === undefined ? [] : transfersOf(refunds, row, receipt);
      if (receipt !== undefined && first !== undefined) {
        return { receipt, transfers: [first, ...more] };
      }
    } catch (error) {
      fault ??= error;
    }
  }
  if (fault !== undefined) throw fault;
  return undefined;
}

/** Transfers of a refund's amount to its payer in a receipt. */
function transfersOf(
  { context }: RefundsContext,
  row: RefundRow,
  { isSuccess, logs }: Pick<TransactionReceipt, "isSuccess" | "logs">,
) {
  if (!isSuccess) return [];
  const value = context.ledger.dialect.amount.decode(row.amount);
  return readPlainTransfers(logs, row.asset).filter(
    (transfer) => transfer.to === row.payer && transfer.value === value,
  );
}

/** Refunds that have such a transfer of the transaction; any number for one of the relayers'. */
async function countOthers(
  transaction: Transaction<LedgerSchema>,
  row: RefundRow,
  hash: Hex,
): Promise<number> {
  const ours = await transaction
    .selectFrom("broadcasts")
    .select("hash")
    .where("hash", "=", hash)
    .executeTakeFirst();
  if (ours !== undefined) return Number.POSITIVE_INFINITY;
  const others = await transaction
    .selectFrom("refunds")
    .select("id")
    .where("payer", "=", row.payer)
    .where("transaction_hash", "=", hash)
    .where("asset", "=", row.asset)
    .where("network", "=", row.network)
    .where("amount", "=", row.amount)
    .where("id", "!=", row.id)
    .execute();
  return others.length;
}

function notPaid(message: string): RefundError {
  return new RefundError("not_paid", message);
}
