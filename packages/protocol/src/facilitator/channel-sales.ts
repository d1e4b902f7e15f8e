import type { ChannelConfig } from "../channels/channel-config.ts";
import type { Voucher } from "../channels/channel-payload.ts";
import type { ChannelReason, ChannelRefusalReason } from "../channels/channel-reason.ts";
import type { ChannelState } from "../channels/channel-state.ts";
import type { Address, Hex } from "../money/address.ts";
import type { Network } from "../money/network.ts";
import type { InvalidReason } from "../x402/reason.ts";
import type { ChannelDepositOutcome, ChannelDepositRequest } from "./channel-deposit.ts";

/** Terms of a seller that a channel has to have. Hex in lower case. */
export interface ChannelTerms {
  receiver: Address;
  receiverAuthorizer: Address;
  token: Address;
  /** Seconds. */
  withdrawDelay: number;
}

/** A signed statement about a channel, from any payload of a buyer. */
export interface PresentedVoucher {
  channelConfig: ChannelConfig;
  voucher: Voucher;
}

/** A request that a voucher pays. */
export interface ChannelRequest {
  network: Network;
  /** The route that sells, as the seller wrote it. An operator may have stopped it. */
  route: string;
  presented: PresentedVoucher;
  /** The most that the request may cost, in the token's smallest unit; above 0. */
  price: bigint;
  /** Identity of the request: a hash over method, URL and body. */
  fingerprint: string;
  /** Finds a kept answer, if the buyer sent an `Idempotency-Key`. */
  keyHash?: string | undefined;
  /** The handler changes nothing: a run that is not charged is harmless. */
  isSafe: boolean;
  /** Returns whether the buyer has left, so that nothing need run. */
  isGone: () => boolean;
  /**
   * The caller: signatures on channels without money, which cost a look at the chain, count for it.
   */
  limitKey?: string | undefined;
}

/** Decision on a request. Its channel is this request's until a `run` or a `repeat` ends. */
export type ChannelAdmission =
  | { state: "admitted"; run: ChannelRun }
  /** Charged already, and the answer has not arrived: it goes out again, free. */
  | { state: "repeated"; repeat: ChannelRepeat }
  | ChannelCorrection
  /** A reason for programs: a deposit has to come first, or the signer owes. */
  | { state: "refused"; reason: ChannelReason | InvalidReason | ChannelRefusalReason }
  /** The request may come again. Nothing was charged. */
  | { state: "busy"; retryAfterSeconds: number }
  /** The signer has let too many handlers run without a payment. */
  | { state: "payer_limited"; retryAfterSeconds: number }
  /** The buyer has left. */
  | { state: "gone" };

/** Out of step: the state that the seller can prove, from which the buyer signs again. */
export interface ChannelCorrection {
  state: "corrected";
  channelState: ChannelState;
  /** The voucher that proves `chargedCumulativeAmount`; absent before the first charge. */
  voucherState?: { signedMaxClaimable: bigint; signature: Hex } | undefined;
}

/** The right to run a handler for a voucher. It ends with a `charge` that fails, or a `drop`. */
export interface ChannelRun {
  /**
   * Charges, on the disk before it resolves. Where nothing was charged, the answer must not go out,
   * and the run has ended.
   *
   * @param charge.amount at most the price
   * @param charge.sealedAnswer kept under the request's `keyHash`
   * @throws RangeError on an amount that the voucher does not cover
   */
  charge(charge: {
    amount: bigint;
    sealedAnswer?: Uint8Array | undefined;
  }): Promise<ChannelCharge | ChannelCorrection>;
  /**
   * Ends the run without a charge.
   *
   * @param options.isFree the handler has worked for nothing: it counts against the signer
   */
  drop(options: { isFree: boolean }): Promise<void>;
}

/** A charge of a request, until its answer has gone out. */
export interface ChannelCharge {
  state: "charged";
  amount: bigint;
  /** The channel after the charge. */
  channelState: ChannelState;
  /**
   * Lowers a charge that was made in advance, on the disk before it resolves; 0 takes all of it
   * back, and ends the request.
   *
   * @param options.isFree the handler has worked for nothing: it counts against the signer
   * @returns false where the channel has gone on
   */
  lower(amount: bigint, options?: { isFree?: boolean }): Promise<boolean>;
  /** Ends the request: its answer has gone out. Nothing waits for the record. */
  deliver(): void;
  /** Ends the request: the same one may have its answer again, free. */
  giveUp(): Promise<void>;
}

/** A charge whose answer goes out again. */
export interface ChannelRepeat extends Omit<ChannelCharge, "lower" | "state"> {
  /** Kept under the request's `keyHash`. */
  sealedAnswer: Uint8Array | undefined;
  /**
   * Begins one more run of the handler, where no answer was kept.
   *
   * @returns false once it has run as often as it may: see `maxHandlerRuns`
   */
  beginRun(): Promise<boolean>;
  /** The channel, for a buyer whose answer is lost for good. */
  correction: ChannelCorrection;
}

/** A buyer's question for money that was not charged. */
export interface ChannelRefundRequest {
  network: Network;
  /** Its voucher is for exactly what was charged so far. */
  presented: PresentedVoucher;
  /** In the token's smallest unit; `undefined`: all that was not charged. */
  amount: bigint | undefined;
  /** Returns whether the buyer has left, so that nothing need wait for the outcome. */
  isGone: () => boolean;
  /** As of a `ChannelRequest`. */
  limitKey?: string | undefined;
}

/** Outcome of a refund, as far as it is known. */
export type ChannelRefundOutcome =
  /** The head of the chain has it. `amount` may be less than was asked for. */
  | { state: "refunded"; transaction: Hex; amount: bigint; channelState: ChannelState }
  | ChannelCorrection
  | { state: "refused"; reason: ChannelReason | InvalidReason | ChannelRefusalReason }
  /** Under way: the same question waits for the same refund. */
  | { state: "pending"; retryAfterSeconds: number }
  /** Nothing was begun. The question may come again. */
  | { state: "busy"; retryAfterSeconds: number }
  /** The signer, or the network, has had too many refunds. Nothing was begun. */
  | { state: "limited"; retryAfterSeconds: number }
  /** The buyer has left. */
  | { state: "gone" };

/**
 * Sales by payment channels (`batch-settlement`). Every method throws on faults of the ledger, and
 * a throw charges nothing that is known of.
 */
export interface ChannelSales {
  /** The key that signs claims of a network's channels; `undefined`: none are served there. */
  authorizerOf(network: Network): Address | undefined;
  /**
   * The least deposit that is executed on a network, by its gas, in the token's smallest unit: an
   * offer must ask for no less.
   */
  minDepositOf?(network: Network): bigint | undefined;
  /**
   * Checks a voucher without a node and without the ledger.
   *
   * @param options `terms` are the offer's, and former ones whose channels are still served
   * @returns the first reason against it, by the offer's terms
   */
  check(
    presented: PresentedVoucher,
    options: { network: Network; terms: readonly [ChannelTerms, ...ChannelTerms[]] },
  ): ChannelReason | InvalidReason | undefined;
  /**
   * Waits for the channel's other requests here, and decides. The voucher was checked.
   *
   * @throws StoppedError where an operator has stopped new payments
   */
  admit(request: ChannelRequest): Promise<ChannelAdmission>;
  /**
   * Executes a deposit, once, and waits until its channel can buy by it. The voucher was checked,
   * and is not admitted. Absent: no deposits are executed.
   *
   * @throws StoppedError where an operator has stopped new payments
   */
  deposit?(request: ChannelDepositRequest): Promise<ChannelDepositOutcome>;
  /**
   * Gives back what was not charged, and waits for the outcome. The voucher was checked. A repeated
   * question joins the refund that it began.
   */
  refund(request: ChannelRefundRequest): Promise<ChannelRefundOutcome>;
}
