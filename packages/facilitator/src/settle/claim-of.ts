import type { OrderedPayment } from "../ledger/queries/find-orders.ts";
import type { Claim } from "../schemes/scheme.ts";

/** The claim that a payment's buyer has signed, as the ledger keeps it. */
export function claimOf({ payment, order }: OrderedPayment): Claim {
  return {
    kind: payment.kind,
    id: payment.authorization,
    authorization: {
      from: payment.authorization.payer,
      to: order.payTo,
      value: payment.value,
      validAfter: order.validAfter,
      validBefore: payment.validBefore,
      nonce: payment.authorization.nonce,
    },
    signature: order.signature,
  };
}
