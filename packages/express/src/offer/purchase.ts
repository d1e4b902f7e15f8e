import {
  type Payment,
  type PaymentPayload,
  type PaymentRequirements,
  readPayment,
} from "@coinslot/protocol";

/** A payment, and the part of the offer that it pays. */
export interface Purchase {
  payload: PaymentPayload;
  requirements: PaymentRequirements;
  payment: Payment;
}

/** The purchase that a payload and requirements make; none where they contradict each other. */
export function readPurchase(
  payload: PaymentPayload,
  requirements: PaymentRequirements,
): Purchase[] {
  const read = readPayment(payload, requirements);
  return read.ok ? [{ payload, requirements, payment: read.payment }] : [];
}
