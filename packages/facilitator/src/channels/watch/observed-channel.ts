import type { ChannelConfig, Hex } from "@coinslot/protocol";
import type { Channel } from "../../ledger/channels/channel.ts";

/** Facts of a channel that decide about its vouchers. Amounts are in the token's smallest unit. */
export interface ObservedChannel {
  kind: "observed";
  /** Its row. `secure` is the highest ceiling that counts. */
  channel: Channel;
  /** Of the chain, at the head. */
  state: {
    balance: bigint;
    totalClaimed: bigint;
    /** `initiatedAt` in Unix seconds. */
    withdrawal: { initiatedAt: number } | undefined;
    refundNonce: bigint;
    /** Up to this ceiling, claims may have shown vouchers to all. */
    published?: bigint | undefined;
  };
  /** False near the end of a withdrawal's delay: nothing is sold on it. */
  isSelling: boolean;
  /** Selling stops at this much unclaimed. */
  maxUnclaimed: bigint;
}

/**
 * `absent`: the chain has no money in this channel. `stale`: the chain is not followed at the
 * moment, so no voucher counts; it may come again.
 */
export type ChannelObservation =
  | ObservedChannel
  | { kind: "absent" }
  | { kind: "stale"; retryAfterSeconds: number };

/** View of the channels for requests, kept by the watcher: no view, no credit. */
export interface ChannelObserver {
  /**
   * Reads the channel of a voucher whose signature and terms are checked already. A channel that
   * this ledger does not know is read from the chain, and begins at its `totalClaimed`.
   */
  observe(channelId: Hex, config: ChannelConfig): Promise<ChannelObservation>;
}
