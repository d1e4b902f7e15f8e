import type { Hex, Voucher } from "@coinslot/protocol";
import type { Channel } from "../../ledger/channels/channel.ts";

/** A voucher whose signature counts, with the request that presents it. */
export interface PresentedRequest {
  voucher: Voucher;
  /** The most that the request may cost; above 0. */
  price: bigint;
  fingerprint: string;
  /** Of the buyer's idempotency key. */
  keyHash?: string | undefined;
}

/** Facts of a channel at the time of a request. */
export interface ChannelFacts {
  channel: Channel;
  /** `totalClaimed` of the chain at the head. */
  totalClaimed: bigint;
  /** Selling on a channel stops at this much credit. */
  maxUnclaimed: bigint;
}

/** Decision on a voucher. */
export type VoucherAdmission =
  /** The request was charged already: its answer goes out again, and nothing is charged. */
  | { kind: "repeat"; chargeId: string }
  /** The handler may run. `seen` and `base` belong into its charge. */
  | { kind: "purchase"; seen: bigint; base: bigint }
  /** Out of step: the buyer gets the state that this ledger can prove, and signs again. */
  | { kind: "correct"; charged: bigint; proof: { ceiling: bigint; signature: Hex } | undefined }
  /** A deposit has to come first. */
  | { kind: "exceeds_balance" }
  /** The channel's signer pays for what was lost first. */
  | { kind: "owing" }
  /** A refund is under way, or claims have not landed: the request may come again. */
  | { kind: "unavailable"; because: "refunding" | "unclaimed" };

/**
 * Decides about a voucher by the channel's row, in the order of README.md: a repeated request never
 * pays twice, and an old ceiling never runs.
 *
 * It reserves nothing. Two requests that are admitted on one base are told apart by their charges.
 */
export function admitVoucher(
  request: PresentedRequest,
  { channel, totalClaimed, maxUnclaimed }: ChannelFacts,
): VoucherAdmission {
  const { voucher, price } = request;
  const { charged, secure, lost, isRefunding } = channel;
  if (price <= 0n) throw new RangeError(`Not the price of a request: ${price}`);
  const base = baseOf(charged, totalClaimed);
  const repeated = findRepeated(request, channel, base);
  if (repeated !== undefined) return { kind: "repeat", chargeId: repeated };
  if (isRefunding) return { kind: "unavailable", because: "refunding" };
  if (voucher.maxClaimableAmount !== base + price) {
    return { kind: "correct", charged: base, proof: channel.voucher };
  }
  if (lost > 0n) return { kind: "owing" };
  if (voucher.maxClaimableAmount > secure) return { kind: "exceeds_balance" };
  if (base - totalClaimed + price > maxUnclaimed) {
    return { kind: "unavailable", because: "unclaimed" };
  }
  return { kind: "purchase", seen: charged, base };
}

/** The larger of what this ledger has charged and what the chain has paid. */
export function baseOf(charged: bigint, totalClaimed: bigint): bigint {
  if (charged > totalClaimed) return charged;
  return totalClaimed;
}

/**
 * The last charge, where this request made it, and may have its answer again: it was not delivered,
 * or is kept under the same key.
 */
function findRepeated(
  { voucher, price, fingerprint, keyHash }: PresentedRequest,
  { last, voucher: covering }: Channel,
  base: bigint,
): string | undefined {
  if (last === undefined) return undefined;
  // The voucher of a free answer is not kept: its ceiling is the next one's.
  const ceiling = last.amount === 0n ? base + price : covering?.ceiling;
  const isSame =
    ceiling === voucher.maxClaimableAmount &&
    last.fingerprint === fingerprint &&
    last.keyHash === keyHash;
  const mayHaveIt = !last.isDelivered || keyHash !== undefined;
  return isSame && mayHaveIt ? last.id : undefined;
}
