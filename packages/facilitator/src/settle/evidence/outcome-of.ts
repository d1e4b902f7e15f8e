import type { SettleErrorReason } from "@coinslot/protocol";
import type { Inclusion } from "../../ledger/payments/ledger-payment.ts";
import type { PaymentOutcomes } from "../../ledger/payments/record-outcomes.ts";
import type { Execution } from "../../schemes/scheme.ts";

/** The record of a payment that has not paid. */
export interface Failure {
  reason: SettleErrorReason;
  /** The transaction whose receipt decides, if one does. */
  transactionId?: string | undefined;
  /** The inclusion of the transaction of ours that did not move the money, if there was one. */
  inclusion?: Inclusion | undefined;
  gasShare?: bigint | undefined;
  /** Of that transaction, where its payer has code: the gas that the shared budget bills. */
  billedGas?: bigint | undefined;
}

/**
 * Outcome of a payment by the chain's events for its claim. Paid by any sender; or failed, where it
 * was used for something else, cancelled, or never seen. `undefined`: not certain yet.
 */
export function outcomeOf(
  id: string,
  execution: Execution | undefined,
  failure: Failure,
): Pick<PaymentOutcomes, "confirmed" | "failed"> | undefined {
  switch (execution?.outcome) {
    case "executed":
      return {
        confirmed: {
          ids: [id],
          inclusion: execution.inclusion,
          gasShare: failure.gasShare,
          billedGas: failure.billedGas,
        },
      };
    case "unknown":
      return undefined;
    case "spent":
    case undefined:
      return { failed: [{ ids: [id], ...failure }] };
  }
}

/** True if it is paid in a block with too few on top of it for the payment to count. */
export function isYoung(
  { confirmed }: Pick<PaymentOutcomes, "confirmed">,
  head: bigint,
  serveAfter: number,
): boolean {
  return confirmed !== undefined && Number(head) - confirmed.inclusion.blockNumber < serveAfter;
}
