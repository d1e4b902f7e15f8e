import { readReceipt, receiptCall } from "../evm/transaction-receipt.ts";
import type { LedgerPayment } from "../ledger/payments/ledger-payment.ts";
import { getPayments } from "../ledger/queries/list-payments.ts";
import type { RefundChange } from "../ledger/refunds/move-refund.ts";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import { requeueRefund } from "../ledger/refunds/requeue-refund.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { planResumed } from "../settle/fleet/plan-payments.ts";
import { confirmFailed } from "./confirm-failed.ts";
import { findUse } from "./find-use.ts";
import { followConfirmed } from "./follow-confirmed.ts";
import { followOperatorsTransaction } from "./paid-by-operator.ts";
import { readRefund } from "./read-chain.ts";
import { inNoBlock, later, looks, type RefundsContext } from "./refunds-context.ts";

/** A failed operation that is valid for less is left to expire, and is signed anew. */
const minValidSeconds = 60n;

/** Transactions of one form that may carry it in vain. */
const maxAttempts = 3;

/** Follows a refund that is signed, by the row of its operation, or that was found executed. */
export async function followRefund(
  refunds: RefundsContext,
  row: RefundRow,
): Promise<RefundChange | undefined> {
  const { ledger } = refunds.context;
  const settlement = refunds.settlements.get(row.network);
  const { state, cause } = row;
  if (settlement === undefined) return later(refunds, looks.waiting, { state, cause });
  if (cause === "operator_paid") return followOperatorsTransaction(refunds, row, settlement);
  if (row.operation_id === null) return followAdopted(refunds, row, settlement);
  const [operation] = await getPayments(ledger, [row.operation_id]);
  if (operation === undefined) return signAgain(refunds);
  switch (operation.state) {
    case "confirmed":
      return followConfirmed(refunds, { row, operation, settlement });
    case "failed":
      if (operation.closedAt !== undefined) return signAgain(refunds);
      return retryFailed(refunds, { row, operation, settlement });
    case "expired":
      return signAgain(refunds);
    default:
      return later(refunds, looks.soon, { state: "sent", cause: null, ...inNoBlock });
  }
}

/** Its authorization is over, unused or used for another amount: the chain is asked which. */
function signAgain(refunds: RefundsContext, pause = 0): RefundChange {
  return later(refunds, pause, {
    state: "scheduled",
    cause: null,
    operation_id: null,
    ...inNoBlock,
  });
}

/**
 * The same authorization again, where the reason of its failure has gone. One that transactions
 * have carried in vain too often is left to expire, and is signed anew. A token may call its
 * recipient, whose code then decides at no cost what our gas is used for.
 */
async function retryFailed(
  refunds: RefundsContext,
  options: {
    row: RefundRow;
    operation: LedgerPayment;
    settlement: NetworkSettlement;
  },
): Promise<RefundChange | undefined> {
  const { row, operation, settlement } = options;
  const { ledger } = refunds.context;
  const { value, validBefore, authorization, attempts } = operation;
  const wait = later(refunds, looks.waiting, { state: "sent", cause: "chain", ...inNoBlock });
  const nowSeconds = BigInt(Math.floor(ledger.now() / 1000));
  if (validBefore < nowSeconds + minValidSeconds) return wait;
  const float = authorization.payer;
  const reading = await readRefund(settlement.network, row, { accounts: [float], float, value });
  if (reading.usedBy.length > 0) {
    await confirmFailed(settlement, { operation: operation.id, head: reading.blockNumber });
    return wait;
  }
  if (reading.isUnreadable) return wait;
  if ((reading.balance ?? 0n) < value) return { ...wait, cause: "float_balance" };
  if (reading.isRefused) return { ...wait, cause: "token_refuses" };
  if (attempts >= maxAttempts) return { ...wait, cause: "fails_in_blocks" };
  if (await requeueRefund(ledger, operation.id)) planResumed(settlement, operation.id);
  return later(refunds, looks.soon, { state: "sent", cause: null, ...inNoBlock });
}

/**
 * An execution that no operation of this ledger explains: the chain alone says how deep it is. A
 * node may show it to one look and hide it from the next: that pair of looks is paced.
 */
async function followAdopted(
  refunds: RefundsContext,
  row: RefundRow,
  settlement: NetworkSettlement,
): Promise<RefundChange> {
  const { ledger } = refunds.context;
  const { float, transaction_hash: hash } = row;
  if (float === null || hash === null) return signAgain(refunds);
  const { network } = settlement;
  const value = ledger.dialect.amount.decode(row.amount);
  const reading = await readRefund(network, row, { accounts: [float], float: undefined, value });
  const [answer] = await network.rpc.requestMany([receiptCall(hash)], {
    minBlock: reading.blockNumber,
  });
  const { receipt } = readReceipt(hash, answer);
  if (reading.usedBy.length === 0 || receipt === undefined) return signAgain(refunds, looks.soon);
  const depth = Number(reading.blockNumber) - receipt.blockNumber;
  const now = ledger.now();
  const inBlock = {
    cause: "executed_elsewhere",
    transaction_hash: hash,
    block_number: receipt.blockNumber,
    block_hash: receipt.blockHash,
  } as const;
  const { blockNumber } = receipt;
  const isDeep = depth >= network.finalAfter;
  const vote =
    isDeep &&
    (await findUse(settlement, row, { account: float, blockNumber, validBefore: undefined }));
  if (vote === "denied") return signAgain(refunds, looks.soon);
  if (vote === "confirmed") {
    return later(refunds, 0, {
      state: "final",
      ...inBlock,
      confirmed_at: row.confirmed_at ?? now,
      final_at: now,
    });
  }
  return depth >= network.serveAfter({ value })
    ? later(refunds, vote === false ? looks.soon : looks.waiting, {
        state: "confirmed",
        ...inBlock,
        ...(vote === "disputed" && { cause: "chain" }),
        confirmed_at: row.confirmed_at ?? now,
      })
    : later(refunds, looks.soon, { state: "sent", ...inBlock, confirmed_at: null });
}
