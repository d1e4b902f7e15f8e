import type { Address } from "@coinslot/protocol";
import type { RefundChange } from "../ledger/refunds/move-refund.ts";
import type { RefundedPayment, RefundRow } from "../ledger/refunds/refund-row.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { findRefundExecution, isExecutionOnChain } from "./find-execution.ts";
import type { RefundReading } from "./read-chain.ts";
import { later, looks, type RefundsContext } from "./refunds-context.ts";

/**
 * Adopts the execution of a refund's nonce that no row explains: of a ledger that was lost, or of a
 * form with another amount. Its `Transfer` says what was given back.
 */
export async function adoptRefund(
  refunds: RefundsContext,
  options: {
    row: RefundRow;
    payment: RefundedPayment;
    settlement: NetworkSettlement;
    account: Address;
    value: bigint;
    reading: RefundReading;
  },
): Promise<RefundChange> {
  const { row, payment, settlement, account, value, reading } = options;
  const { ledger, logger } = refunds.context;
  const { searches } = refunds;
  const fromBlock = BigInt(payment.blockNumber ?? 0);
  const execution = await findRefundExecution(settlement.network, row, {
    account,
    value,
    fromBlock,
    toBlock: searches.get(row.id) ?? reading.blockNumber,
    maxBlocks: BigInt(refunds.settings.searchBlocks),
  });
  searches.delete(row.id);
  if (
    execution.outcome !== "unknown" &&
    !(await isExecutionOnChain(settlement, row, { account, value, execution }))
  ) {
    return later(refunds, looks.waiting, { state: "waiting", cause: "chain" });
  }
  const isDeep = (block: bigint | number) =>
    reading.blockNumber - BigInt(block) >= BigInt(settlement.network.finalAfter);
  switch (execution.outcome) {
    case "moved": {
      const { transactionHash, blockNumber, blockHash } = execution.inclusion;
      logger.warn(
        { refund: row.id, payment: row.payment_id, transactionHash },
        "a refund was executed before: it is adopted",
      );
      return later(refunds, 0, {
        state: "sent",
        cause: "executed_elsewhere",
        amount: ledger.dialect.amount.encode(execution.value),
        float: account,
        transaction_hash: transactionHash,
        block_number: blockNumber,
        block_hash: blockHash,
      });
    }
    case "cancelled":
      return isDeep(execution.blockNumber)
        ? later(refunds, 0, {
            state: "void",
            cause: "cancelled",
            block_number: Number(execution.blockNumber),
          })
        : later(refunds, looks.soon, { state: "waiting", cause: "cancelled" });
    case "misdirected":
      if (!isDeep(execution.inclusion.blockNumber)) {
        return later(refunds, looks.soon, { state: "waiting", cause: "chain" });
      }
      logger.error(
        { refund: row.id, transactionHash: execution.inclusion.transactionHash },
        "the nonce of a refund is used, and no Transfer to its payer stands beside that: look at the transaction, and check the key of the float",
      );
      return later(refunds, looks.rare, {
        state: "manual",
        cause: "executed_elsewhere",
        block_number: execution.inclusion.blockNumber,
      });
    case "unknown": {
      const { searchedTo } = execution;
      const isThrough = searchedTo <= fromBlock;
      // A node may have been without the events: the next search begins at the head again.
      if (!isThrough) searches.set(row.id, searchedTo);
      return later(refunds, isThrough ? looks.waiting : looks.soon, {
        state: "waiting",
        cause: "chain",
      });
    }
  }
}
