import type {
  ChannelCallReason,
  ChannelReason,
  ChannelRefusalReason,
} from "../channels/channel-reason.ts";
import type { ChannelState } from "../channels/channel-state.ts";
import type { Address, Hex } from "../money/address.ts";
import type { InvalidReason } from "../x402/reason.ts";
import type { ChannelSettlement, ChannelVerification } from "./read-channel-request.ts";

type Reason = ChannelCallReason | ChannelReason | ChannelRefusalReason | InvalidReason;

/** The asker of a call: the owner of the API key that came with it. */
export interface HostedCaller {
  /** `undefined`: no key, or none that is known. Nothing is done for it. */
  caller: string | undefined;
  /** Returns whether it has left, so that it needs no answer. */
  isGone: () => boolean;
}

/** Verdict on a payload of a buyer, with its channel as the chain has it. */
export type ChannelVerdict =
  | { isValid: true; payer: Address; channelState: ChannelState }
  | { isValid: false; reason: Reason; payer?: Address | undefined; message?: string | undefined };

/** Outcome of a call of the escrow. */
export type ChannelCallAnswer =
  | {
      state: "done";
      /** `undefined`: the chain had all of it already, by another transaction. */
      transaction: Hex | undefined;
      payer?: Address | undefined;
      /** Deposited, settled or refunded, in the token's smallest unit. */
      amount?: bigint | undefined;
      /** After a deposit or a refund. */
      channelState?: ChannelState | undefined;
    }
  /** On its way: the same request finds out, and sends nothing more. */
  | { state: "pending"; transaction: Hex | undefined; payer?: Address | undefined }
  | {
      state: "refused";
      reason: Reason;
      message?: string | undefined;
      payer?: Address | undefined;
      /** A transaction that failed, or that has done a part of it. */
      transaction?: Hex | undefined;
    };

/**
 * Channels of other sellers, as a hosted facilitator serves them to callers that it knows. It keeps
 * no sum that was charged: the sellers do.
 *
 * Both throw a FacilitatorError where nothing is known of the outcome: `CallerLimitedError` where
 * the caller has used its gas up, `StoppedError` where an operator has stopped new deposits.
 */
export interface HostedChannels {
  verify(request: ChannelVerification, asker: HostedCaller): Promise<ChannelVerdict>;
  /** Makes a call of the escrow, once, and waits for its outcome as for that of a payment. */
  settle(request: ChannelSettlement, asker: HostedCaller): Promise<ChannelCallAnswer>;
}
