import { symbolOf } from "@coinslot/protocol";
import {
  findAsset,
  inBucket,
  type SpendableAsset,
  showInBucket,
} from "../budget/spending-policy.ts";
import type { LockedLimits } from "./channel-options.ts";
import { type ChannelRecord, larger, lockedIn } from "./channel-record.ts";

/** The next voucher of a channel, and the deposit that it needs. */
export interface VoucherPlan {
  ceiling: bigint;
  /**
   * - `none`: the balance covers the ceiling, or a deposit that the seller has reported.
   * - `repeat`: the open deposit goes along once more, the same authorization.
   * - `new`: another one has to be authorized.
   */
  deposit: { kind: "none" } | { kind: "repeat" } | { kind: "new"; amount: bigint };
}

/** Requests for which a deposit lasts, where the seller announces no least deposit. */
const requestsPerDeposit = 10n;

/**
 * Plans the voucher for one request.
 *
 * @returns the reason why there is none
 */
export function planVoucher(
  { charged, balance, deposit }: ChannelRecord,
  { amount, minDeposit }: { amount: bigint; minDeposit?: bigint | undefined },
): VoucherPlan | string {
  const ceiling = charged + amount;
  const missing = ceiling - balance;
  if (deposit !== undefined) {
    if (deposit.isReported && missing <= deposit.amount)
      return { ceiling, deposit: { kind: "none" } };
    // Two open deposits could both be executed, for one purchase.
    if (missing > deposit.amount) return "an earlier deposit is not decided yet, and is too small";
    return { ceiling, deposit: { kind: missing > 0n ? "repeat" : "none" } };
  }
  if (missing <= 0n) return { ceiling, deposit: { kind: "none" } };
  const wanted = minDeposit ?? requestsPerDeposit * amount;
  return { ceiling, deposit: { kind: "new", amount: larger(wanted, missing) } };
}

/**
 * The limit of money in escrow that a deposit would exceed, in words; `undefined` if none. Channels
 * of tokens that the budget no longer names cannot be converted, and do not count.
 */
export function findExceededLock(
  all: readonly ChannelRecord[],
  wanted: { asset: SpendableAsset; amount: bigint; origin: string; limits: LockedLimits },
  assets: readonly SpendableAsset[],
): string | undefined {
  const { asset, amount, limits } = wanted;
  const { hostname } = new URL(wanted.origin);
  let atHost = inBucket(asset, amount);
  let inAll = atHost;
  for (const record of all) {
    const own = findAsset(assets, record.network, record.config.token);
    if (own?.pot !== asset.pot) continue;
    const locked = inBucket(own, lockedIn(record));
    inAll += locked;
    if (new URL(record.origin).hostname === hostname) atHost += locked;
  }
  const show = (sum: bigint) => showInBucket(asset.pot, sum);
  const deposit = `A deposit of ${show(inBucket(asset, amount))} ${symbolOf(asset)}`;
  if (atHost > limits.perHost) {
    return `${deposit} would lock ${show(atHost)} at ${hostname}, above channels.locked.perHost: ${show(limits.perHost)}`;
  }
  if (inAll > limits.inAll) {
    return `${deposit} would lock ${show(inAll)} in all, above channels.locked.inAll: ${show(limits.inAll)}`;
  }
  return undefined;
}
