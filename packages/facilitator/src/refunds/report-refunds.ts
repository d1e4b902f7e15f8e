import { findRouteOf } from "../ledger/queries/find-route-of.ts";
import type { RefundChange } from "../ledger/refunds/move-refund.ts";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import { needsHelp, type RefundState } from "../ledger/refunds-schema.ts";
import type { RefundsContext } from "./refunds-context.ts";

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
  if (isPaid(state) && !isPaid(row.state)) void countRefunded(context, { ...row, amount });
  const isDenied = state === "confirmed" && cause === "chain";
  if (isDenied || needsHelp.some((each) => each === state)) {
    logger.warn(
      { refund: row.id, payment: row.payment_id, network, state, cause, amount: amount.toString() },
      isDenied ? "an endpoint denies a refund that another one shows in a block" : "a refund waits",
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

function isPaid(state: RefundState | "sent"): boolean {
  return state === "confirmed" || state === "final";
}

/** Counts tokens given back, by the route of the sale. */
async function countRefunded(
  { ledger, metrics, logger }: RefundsContext["context"],
  refund: Pick<RefundRow, "payment_id" | "network" | "asset"> & { amount: bigint },
): Promise<void> {
  const { network, asset, payment_id, amount } = refund;
  try {
    const route = (await findRouteOf(ledger, payment_id)) ?? "";
    metrics.money.refunded({ network, asset, route }, amount);
  } catch (err) {
    logger.warn({ err, refund: payment_id }, "a refund is missing in the metric of refunds");
  }
}
