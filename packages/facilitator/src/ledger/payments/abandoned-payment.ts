import type { HeldPayment } from "../queries/find-payments.ts";
import type { LedgerPayment } from "./ledger-payment.ts";

/** Its process may live, and could write no heartbeat: see `noteHeartbeat`. */
export function countAsHeld(held: HeldPayment): void {
  if (!held.isSilent) return;
  held.isHeld = true;
  held.isAbandoned = false;
}

/**
 * The payment, with the possible run of a dead process for its reservation: no row records it.
 * Later runs are counted before they begin.
 */
export function withLostRun({ payment, isAbandoned }: HeldPayment): LedgerPayment {
  const isLost = isAbandoned && payment.state === "reserved";
  return isLost ? { ...payment, runs: payment.runs + 1 } : payment;
}
