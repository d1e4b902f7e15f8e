import type { LedgerPayment } from "../ledger/payments/ledger-payment.ts";
import type { RefundChange } from "../ledger/refunds/move-refund.ts";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import { undoFinalPayments } from "../ledger/transactions/undo-final-blocks.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { planResumed } from "../settle/fleet/plan-payments.ts";
import { findUse } from "./find-use.ts";
import { inNoBlock, later, looks, type RefundsContext } from "./refunds-context.ts";

interface Confirmed {
  row: RefundRow;
  operation: LedgerPayment;
  settlement: NetworkSettlement;
}

/**
 * Follows a refund whose operation is confirmed. The endpoints are asked once it is final, or its
 * form is over: a block that a node has made up far above the chain never becomes final.
 */
export async function followConfirmed(
  refunds: RefundsContext,
  confirmed: Confirmed,
): Promise<RefundChange> {
  const { row, operation, settlement } = confirmed;
  const { ledger } = refunds.context;
  const { inclusion, confirmedAt, authorization } = operation;
  const end = row.valid_before ?? undefined;
  const validBefore = end === undefined ? undefined : ledger.dialect.amount.decode(end);
  const isPast = validBefore !== undefined && validBefore * 1_000n <= ledger.now();
  const isAsked = operation.finalAt !== undefined || isPast;
  const blockNumber = inclusion?.blockNumber ?? 0;
  const use = { account: authorization.payer, blockNumber, validBefore };
  const vote = isAsked ? await findUse(settlement, row, use) : undefined;
  const isDenied = vote === "denied";
  const isElsewhere =
    vote === "confirmed" &&
    operation.finalAt === undefined &&
    (await isAboveChain(settlement, blockNumber));
  if ((isDenied || isElsewhere) && (await takeBack(refunds, confirmed, { isElsewhere }))) {
    return later(refunds, looks.soon, { state: "sent", cause: null, ...inNoBlock });
  }
  const finalAt = vote === "confirmed" ? operation.finalAt : undefined;
  const isSoon = vote === undefined || (vote === "confirmed" && !isElsewhere);
  return later(refunds, isSoon ? looks.soon : looks.waiting, {
    state: finalAt === undefined ? "confirmed" : "final",
    cause: vote === "disputed" || isDenied || isElsewhere ? "chain" : null,
    transaction_hash: inclusion?.transactionHash ?? null,
    block_number: inclusion?.blockNumber ?? null,
    block_hash: inclusion?.blockHash ?? null,
    confirmed_at: confirmedAt ?? null,
    final_at: finalAt ?? null,
  });
}

/** True of a made-up block: the chain has none of this height, though its form is over at depth. */
async function isAboveChain({ network }: NetworkSettlement, blockNumber: number) {
  const { number: head } = await network.watcher.read(0);
  return blockNumber > Number(head) + network.finalAfter;
}

/**
 * Takes back an operation whose receipt was false: no endpoint has executed it, or `isElsewhere`,
 * in another block. It is queued again, as after a reorganisation deeper than final, and its true
 * block is found. The token uses its nonce once, so a false denial pays nothing twice.
 *
 * @returns false where retention has deleted its signature: nothing can send it
 */
async function takeBack(
  { context: { ledger, logger } }: RefundsContext,
  { row, settlement, operation: { id, inclusion } }: Confirmed,
  { isElsewhere }: { isElsewhere: boolean },
): Promise<boolean> {
  if (inclusion === undefined) return false;
  const { blockNumber: number, blockHash: hash, transactionHash } = inclusion;
  const { number: head } = await settlement.network.watcher.read(0);
  const undone = await undoFinalPayments(ledger, {
    network: row.network,
    ids: [id],
    blocks: [{ number, hash }],
    // Where it is used by now, the block that has shown it as unused stays.
    unusedAtBlock: isElsewhere ? number : Math.min(number, Number(head)),
  });
  if (!undone.some((each) => each.id === id)) return false;
  logger.error(
    { refund: row.id, payment: row.payment_id, transactionHash },
    isElsewhere
      ? "a refund's receipt names a block far above the chain: its true block is looked for"
      : "a refund was executed by a false receipt alone: no endpoint has it, and it is sent again",
  );
  planResumed(settlement, id);
  return true;
}
