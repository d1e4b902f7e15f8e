import type { RefundChange } from "../ledger/refunds/move-refund.ts";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import type { RefundState } from "../ledger/refunds-schema.ts";
import type { RefundsContext } from "./refunds-context.ts";

/** States in which an operator, or money, is needed. */
const needsHelp: readonly RefundState[] = ["waiting", "unsigned", "review", "blocked", "manual"];

/**
 * Tells of a refund's change: an event, a metric, and a warning where it does not go on by itself.
 * `undefined`: it was signed and given to the engine.
 */
export function reportRefunds(
  { context }: RefundsContext,
  row: RefundRow,
  change: Partial<RefundChange> | undefined,
): void {
  const { ledger, logger, metrics, emit } = context;
  const state = change === undefined ? "sent" : (change.state ?? row.state);
  const cause = change === undefined ? undefined : (change.cause ?? undefined);
  const { network } = row;
  metrics.refunds.inc({ network, state });
  const amount = ledger.dialect.amount.decode(change?.amount ?? row.amount);
  if (needsHelp.includes(state)) {
    logger.warn(
      { refund: row.id, payment: row.payment_id, network, state, cause, amount: amount.toString() },
      "a refund waits",
    );
  }
  emit({
    type: "refund_changed",
    refund: row.id,
    payment: row.payment_id,
    network,
    asset: row.asset,
    payer: row.payer,
    amount,
    state,
    cause,
    transactionHash: change?.transaction_hash ?? undefined,
  });
}
