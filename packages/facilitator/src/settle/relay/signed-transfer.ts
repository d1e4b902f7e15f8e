import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import type { NetworkTransfer } from "../../simulation/simulation-cache.ts";

/** The transfer that a payment's buyer has signed, as the ledger keeps it. */
export function signedTransferOf({ payment, order }: OrderedPayment): NetworkTransfer {
  return {
    network: payment.authorization.network,
    asset: payment.authorization.asset,
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
