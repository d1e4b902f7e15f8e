import type { ChannelConfig, Hex } from "@coinslot/protocol";
import type { Channel } from "../../ledger/channels/channel.ts";

/** Facts of a channel that decide about its vouchers. Amounts are in the token's smallest unit. */
export interface SeenChannel {
  kind: "seen";
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
 * `absent`: the chain has no money in this channel. `blind`: the chain is not followed at the
 * moment, so no voucher counts; it may come again.
 */
export type Sight = SeenChannel | { kind: "absent" } | { kind: "blind"; retryAfterSeconds: number };

/** View of the channels for requests, kept by the watcher: no view, no credit. */
export interface ChannelSight {
  /**
   * Reads the channel of a voucher whose signature and terms are checked already. A channel that
   * this ledger does not know is read from the chain, and begins at its `totalClaimed`.
   */
  see(channelId: Hex, config: ChannelConfig): Promise<Sight>;
}
