import type { TransactionReceipt } from "../../evm/transaction-receipt.ts";
import type { ConcludedPayment } from "../../ledger/payments/ledger-payment.ts";
import { recordOutcomes } from "../../ledger/payments/record-outcomes.ts";
import { resolveTransaction } from "../evidence/resolve-transaction.ts";
import type { Relayer } from "./relayer-context.ts";
import type { TrackedTransaction } from "./relayer-state.ts";

/**
 * Records the outcomes of an included transaction's payments, as far as they are deep enough, and
 * publishes them.
 */
export async function recordReceipt(
  relayer: Relayer,
  {
    transaction,
    receipt,
    head,
  }: {
    transaction: TrackedTransaction;
    receipt: TransactionReceipt;
    /** Number of the newest block, where a payment waits for depth. */
    head: bigint;
  },
): Promise<void> {
  const { network, state, labels } = relayer;
  const { ledger, notifier, logger, metrics, faultPoint } = relayer.context;
  await faultPoint("included");
  const { transactionHash, blockNumber, blockHash, gasUsed, gasCost } = receipt;
  logger.debug({ transaction: transactionHash, blockNumber, ...labels }, "transaction included");
  network.trialFloor.saw(BigInt(blockNumber));
  const depth = Math.max(0, Number(head) - blockNumber);
  const { outcomes, left, isSpoilt } = await resolveTransaction({
    network,
    transaction,
    receipt,
    depth,
  });
  if (isSpoilt) network.spoilt.note(transaction.id);
  const isNews = outcomes.some(({ confirmed, failed, requeued }) =>
    [confirmed, requeued, ...(failed ?? [])].some((part) => part && part.ids.length > 0),
  );
  const isComplete = left.length === 0;
  if (!isNews && !isComplete) return;
  const inclusion = { transactionHash, blockNumber, blockHash };
  const changed = await recordOutcomes(
    ledger,
    outcomes,
    isComplete ? { id: transaction.id, inclusion, gasUsed, gasCost } : undefined,
  );
  await faultPoint("recorded");
  transaction.payments = left;
  if (isComplete) {
    state.open.delete(transaction.id);
    metrics.transactions.inc({ network: network.network, event: "settled" });
    if (gasCost !== undefined) metrics.money.gas(labels, gasCost);
  }
  countGasShares(relayer, changed, receipt);
  const requeued = outcomes.flatMap(({ requeued }) => requeued?.ids ?? []);
  if (requeued.length > 0) relayer.onRequeued(requeued);
  notifier.publish(changed);
}

/** Counts the parts of the gas by what was sold. */
function countGasShares(
  { context: { metrics } }: Relayer,
  changed: readonly ConcludedPayment[],
  { gasUsed, gasCost }: TransactionReceipt,
): void {
  if (gasCost === undefined || gasUsed === 0n) return;
  for (const { authorization, recorded } of changed) {
    if (recorded === undefined || recorded.isRefund || recorded.gasShare === null) continue;
    const { network, asset } = authorization;
    const wei = (BigInt(recorded.gasShare) * gasCost) / gasUsed;
    metrics.money.gasShare({ network, asset, routeId: recorded.routeId }, wei);
  }
}
