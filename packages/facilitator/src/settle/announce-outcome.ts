import type { ConcludedPayment } from "../ledger/payments/ledger-payment.ts";
import type { Logger } from "../logger.ts";
import type { SettlementMetrics } from "./metrics.ts";
import type { SettlementEvent } from "./settlement-event.ts";

/** Where outcomes are announced in this process. */
interface Announcing {
  metrics: SettlementMetrics;
  logger: Logger;
  emit: (event: SettlementEvent) => void;
}

/** Counts a sale once, in the process that has recorded it. */
export function countIncome(
  { metrics }: { metrics: SettlementMetrics },
  payment: ConcludedPayment,
): void {
  const { state, authorization, value, recorded } = payment;
  if (state !== "confirmed" || recorded === undefined || recorded.isRefund) return;
  const { network, asset } = authorization;
  metrics.money.income({ network, asset, routeId: recorded.routeId }, value);
}

/** Counts, logs and emits an outcome. */
export function announceOutcome(
  { metrics, logger, emit }: Announcing,
  payment: ConcludedPayment,
): void {
  const { authorization, inclusion, reason, state } = payment;
  const { network } = authorization;
  metrics.outcomes.inc({ network, outcome: state });
  logger.info(
    {
      payment: payment.id,
      state,
      reason,
      transaction: inclusion?.transactionHash,
      ...authorization,
    },
    "payment outcome",
  );
  if (payment.state === "confirmed" && inclusion) {
    const { transactionHash } = inclusion;
    emit({ type: "settle_completed", authorization, transactionHash });
  } else {
    emit({ type: "settle_failed", authorization, reason: reason ?? "unexpected_settle_error" });
  }
}
