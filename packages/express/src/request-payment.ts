import type { Address, Network, SettleResponse } from "@coinslot/protocol";

interface PaidRequest {
  /** Lower case. */
  payer: Address;
  /** Amount that the payer pays, in the token's smallest unit, as a decimal string. */
  amount: string;
  /** The token contract. */
  asset: Address;
  network: Network;
}

/** The payment of a request whose money moves when its handler has answered. */
export interface AuthorizedPayment extends PaidRequest {
  paymentFlow: "authorization";
  /**
   * Charges nothing for this request, if called before the answer is complete. Of no effect when
   * the handler runs once more for a payment that was settled before.
   */
  waive(): void;
}

/** The payment of a request whose money has moved before its handler runs. */
export interface SettledPayment extends PaidRequest {
  paymentFlow: "upfront";
  settlement: SettleResponse;
}

/** Type of `request.payment` in the handler of a paid route. */
export type RequestPayment = AuthorizedPayment | SettledPayment;

declare global {
  namespace Express {
    interface Request {
      /**
       * The payment of this request; absent on routes that are not sold, and after `grantAccess`.
       */
      payment?: RequestPayment;
    }
  }
}
