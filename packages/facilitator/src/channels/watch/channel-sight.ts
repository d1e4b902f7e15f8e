import type { ChannelConfig, Hex } from "@coinslot/protocol";
import type { Channel } from "../../ledger/channels/channel.ts";

/** A channel as vouchers may be decided by. Amounts are in the token's smallest unit. */
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

/** The eyes of requests, which the watcher keeps: no eyes, no credit. */
export interface ChannelSight {
  /**
   * A channel of a voucher whose signature and terms are checked already. One that this ledger does
   * not know is read from the chain, and begins at its `totalClaimed`.
   */
  see(channelId: Hex, config: ChannelConfig): Promise<Sight>;
}
