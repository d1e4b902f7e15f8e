import type { Address, Hex } from "@coinslot/protocol";
import type { ClaimableChannel } from "../../ledger/channels/claimable.ts";
import { type ChannelSettings, worthFactor } from "../channel-settings.ts";
import { moneyAtRisk } from "../money-at-risk.ts";
import type { SightedChannel } from "./see-withdrawals.ts";

/** A row that a claim could have. Amounts are in the token's smallest unit. */
export interface ClaimCandidate extends SightedChannel {
  /** The sum up to which it asks. */
  totalClaimed: bigint;
  /** Its income, beside claims that are on their way. */
  gain: bigint;
  voucher: { ceiling: bigint; signature: Hex };
  /** Its payer withdraws unclaimed money: the claim has a deadline, in Unix seconds. */
  deadline: number | undefined;
}

export interface ChooseOptions {
  dues: readonly SightedChannel[];
  /** The highest sum that an open transaction claims, by channel. */
  inFlight: ReadonlyMap<Hex, bigint>;
  /** The same of refunds' transactions. They are in no haste, so they answer no withdrawal. */
  inRefunds?: ReadonlyMap<Hex, bigint> | undefined;
  settings: Pick<ChannelSettings, "mostAtRisk" | "claimAfterMs" | "idleMs" | "claimCost">;
  /** Unix milliseconds. */
  now: number;
  /** Unix seconds, by this machine's clock or the chain's: the later one. */
  time: number;
  /** Rows of a full claim. */
  maxRows: number;
  /** Claims all that is unclaimed: at the shutdown, and on request. */
  isAll?: boolean | undefined;
}

/** A charge that may still be lowered by its handler is claimed after this, at the latest. */
const heldMs = 600_000;

/**
 * Chooses channels to be claimed now: those whose payer withdraws unclaimed money first, by their
 * deadlines, then the largest. A row worth less than its gas is never chosen.
 */
export function chooseClaims(options: ChooseOptions): ClaimCandidate[] {
  const { dues, settings, now, maxRows, isAll = false } = options;
  const candidates = dues.flatMap((due) => candidateOf(due, options) ?? []);
  const bySigner = new Map<Address, bigint>();
  for (const { config, gain } of candidates) {
    const signer = config.payerAuthorizer;
    bySigner.set(signer, (bySigner.get(signer) ?? 0n) + gain);
  }
  const worthwhile = settings.claimCost * worthFactor;
  const isFull = candidates.filter(({ gain }) => gain >= worthwhile).length >= maxRows;
  const chosen = candidates.filter((candidate) => {
    const { gain, deadline, since, channel, config } = candidate;
    if (gain < settings.claimCost) return false;
    if (isAll || deadline !== undefined) return true;
    if (gain > settings.mostAtRisk) return true;
    if ((bySigner.get(config.payerAuthorizer) ?? 0n) > settings.mostAtRisk) return true;
    const longest = Math.min(settings.claimAfterMs, (config.withdrawDelay * 1_000) / 3);
    if (isPast(since, longest, now)) return true;
    const isIdle = isPast(channel.last?.at ?? since, settings.idleMs, now);
    return gain >= worthwhile && (isIdle || isFull);
  });
  const never = Number.POSITIVE_INFINITY;
  return chosen.sort(
    (a, b) => (a.deadline ?? never) - (b.deadline ?? never) || compare(b.gain, a.gain) || 0,
  );
}

function candidateOf(
  due: SightedChannel,
  { inFlight, inRefunds, now, time }: ChooseOptions,
): ClaimCandidate | undefined {
  const { channel, config, state } = due;
  const { channelId } = channel;
  // Without its state, nothing is known of what it can pay.
  if (state === undefined || channel.voucher === undefined) return undefined;
  const { withdrawal } = state;
  const isRisk = withdrawal !== undefined && moneyAtRisk(channel, state) > 0n;
  const deadline = isRisk ? withdrawal.initiatedAt + config.withdrawDelay : undefined;
  const isPressing = deadline !== undefined && deadline - time < config.withdrawDelay / 2;
  const holdMs = isPressing ? 0 : Math.min(heldMs, (config.withdrawDelay * 1_000) / 4);
  const held = heldBack(due, now, holdMs);
  const asked = channel.charged - held;
  const totalClaimed = lesser(asked, state.balance);
  const flying = inFlight.get(channelId) ?? 0n;
  const refunding = deadline === undefined ? (inRefunds?.get(channelId) ?? 0n) : 0n;
  const paid = larger(larger(flying, refunding), state.totalClaimed);
  if (totalClaimed <= paid) return undefined;
  const voucher = held > 0n ? voucherFor(channel, totalClaimed) : channel.voucher;
  if (voucher === undefined) return undefined;
  return { ...due, totalClaimed, gain: totalClaimed - paid, voucher, deadline };
}

/**
 * The voucher of a claim that leaves the last charge out. Calldata shows it to all, and what was
 * shown buys nothing. Were it the last one, and its charge then taken back whole, the channel would
 * sell nothing more: its next ceiling is that one's again.
 */
function voucherFor(
  { voucher, voucherBefore }: ClaimableChannel["channel"],
  totalClaimed: bigint,
): ClaimCandidate["voucher"] | undefined {
  const covers = voucherBefore !== undefined && voucherBefore.ceiling >= totalClaimed;
  return covers ? voucherBefore : voucher;
}

/** Of the last charge: a handler that runs after it may lower it until its answer has gone out. */
function heldBack({ channel: { last } }: ClaimableChannel, now: number, holdMs: number): bigint {
  if (last === undefined || last.isDelivered || isPast(last.at, holdMs, now)) return 0n;
  return last.amount;
}

/** Time has passed since then; or the clock was set back since, by as much. */
export function isPast(at: number, forMs: number, now: number): boolean {
  return Math.abs(now - at) >= forMs;
}

function larger(a: bigint, b: bigint): bigint {
  if (a > b) return a;
  return b;
}

function lesser(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : Number(a > b);
}
