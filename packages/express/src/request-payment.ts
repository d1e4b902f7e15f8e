import type { Address, Hex, Network, SettleResponse } from "@coinslot/protocol";

interface PaidRequest {
  /** Lower case. By a channel: the account that signs its vouchers. */
  payer: Address;
  /**
   * Amount that the payer pays, in the token's smallest unit, as a decimal string. By a channel:
   * the most that it pays.
   */
  amount: string;
  /** The token contract. */
  asset: Address;
  network: Network;
}

interface Waivable {
  /**
   * Charges nothing for this request, if called before the answer is complete. Of no effect when
   * the handler runs once more for a payment that was settled before.
   */
  waive(): void;
}

/** The payment of a request whose money moves when its handler has answered. */
export interface AuthorizedPayment extends PaidRequest, Waivable {
  scheme: "exact";
  paymentFlow: "authorization";
}

/** The payment of a request whose money has moved before its handler runs. */
export interface SettledPayment extends PaidRequest {
  scheme: "exact";
  paymentFlow: "upfront";
  settlement: SettleResponse;
}

/** The channel that pays a request. */
export interface PayingChannel {
  id: Hex;
  /**
   * The account in whose name the channel was opened. Any contract can open one in any name: only
   * `payer` of the request has signed.
   */
  payer: Address;
}

/** Charging for less than the maximum. */
interface Chargeable {
  scheme: "batch-settlement";
  channel: PayingChannel;
  /**
   * Charges a part of the maximum, in the token's smallest unit: a `bigint`, or a decimal string.
   * Several parts are added up. Without a call, the maximum is charged.
   *
   * While an answer streams (`paymentFlow: "upfront"`), a part that exceeds the maximum is not
   * charged: the answer ends there, cleanly. Otherwise it throws, before any money is involved.
   *
   * @returns false once the answer has ended, or its buyer has left
   * @throws RangeError on a part that is no whole amount, or exceeds the maximum
   */
  charge(amount: bigint | string): boolean;
}

/** The payment by a channel of a request that is charged when its handler has answered. */
export interface ChannelAuthorizedPayment extends PaidRequest, Waivable, Chargeable {
  paymentFlow: "authorization";
}

/** The payment by a channel of a request whose maximum was charged before its handler runs. */
export interface ChannelSettledPayment extends PaidRequest, Chargeable {
  paymentFlow: "upfront";
  settlement: SettleResponse;
}

/** Type of `request.payment` in the handler of a paid route. */
export type RequestPayment =
  | AuthorizedPayment
  | SettledPayment
  | ChannelAuthorizedPayment
  | ChannelSettledPayment;

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
