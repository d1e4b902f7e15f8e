import type { ChannelPayload } from "../channels/channel-payload.ts";
import type { ChannelReason, ChannelRefusalReason } from "../channels/channel-reason.ts";
import type { ChannelState } from "../channels/channel-state.ts";
import type { Hex } from "../money/address.ts";
import type { TokenDomain } from "../x402/eip3009.ts";
import type { InvalidReason } from "../x402/reason.ts";
import type { ChannelCorrection, ChannelRequest } from "./channel-sales.ts";

/** Money for a channel, as a buyer's payload has it. */
export type PresentedDeposit = Extract<ChannelPayload, { type: "deposit" }>["deposit"];

/** A request that brings money for its channel, before its voucher is admitted. */
export interface ChannelDepositRequest
  extends Omit<ChannelRequest, "isSafe">,
    Pick<DepositTerms, "domain" | "minDeposit"> {
  deposit: PresentedDeposit;
  /** Longest wait for the chain; a facilitator may wait for less. */
  timeoutMs: number;
}

/** Terms of an offer for deposits. */
export interface DepositTerms {
  /** The token's EIP-712 domain, under which the authorization is signed. */
  domain: TokenDomain;
  /** The least deposit that the seller takes, in the token's smallest unit. */
  minDeposit: bigint;
}

/** Outcome of a deposit. The request's voucher is not admitted by it. */
export type ChannelDepositOutcome =
  /** The money is in the channel, deep enough to buy by it. `transaction`: of any sender. */
  | { state: "deposited"; transaction: Hex; amount: bigint; channelState: ChannelState }
  /** The channel needs no deposit for this voucher, so none was executed. */
  | { state: "needless" }
  | ChannelCorrection
  /** A reason for programs. The authorization is not executed by this facilitator any more. */
  | { state: "refused"; reason: ChannelReason | InvalidReason | ChannelRefusalReason }
  /** On its way: the same request finds out, and deposits nothing more. */
  | { state: "pending"; transaction: Hex | undefined; retryAfterSeconds: number }
  /** The request may come again. Nothing was deposited. */
  | { state: "busy"; retryAfterSeconds: number }
  /** The signer has caused too many deposits or free runs. */
  | { state: "payer_limited"; retryAfterSeconds: number }
  /** The buyer has left. */
  | { state: "gone" };
