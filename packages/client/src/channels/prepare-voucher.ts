import { bytesToHex } from "viem";
import { refuse } from "../offer/choose-requirements.ts";
import type { Refusal, RefusalCode } from "../offer/offer-refused-error.ts";
import type { PayingFetchContext } from "../paying-fetch-options.ts";
import {
  bookExposureOf,
  type ChannelLedger,
  lookAtChain,
  lowerExposure,
} from "./channel-ledger.ts";
import type { ChannelContext } from "./channel-options.ts";
import { type ChannelRecord, larger, type OpenDeposit } from "./channel-record.ts";
import type { ChannelCandidate } from "./choose-channel.ts";
import { findExceededLock, planVoucher, type VoucherPlan } from "./plan-voucher.ts";

/** A voucher whose ceiling, and whose deposit, are booked and on the disk. */
export interface PreparedVoucher {
  record: ChannelRecord;
  ceiling: bigint;
  /** The deposit that goes along. */
  deposit: OpenDeposit | undefined;
  /** True if it was never signed before. */
  isNewDeposit: boolean;
}

interface Preparation {
  context: PayingFetchContext;
  channels: ChannelContext;
  ledger: ChannelLedger;
  candidate: ChannelCandidate;
  /** Highest ceiling that this call may sign. */
  limit: bigint;
}

/** Least time that a deposit needs until its end, as for other authorizations. */
const minDepositSeconds = 10;

/**
 * Plans the next voucher of a channel, books it, and stores its ceiling and its deposit. Signs
 * nothing. The chain is asked only where a deposit is open or needed.
 *
 * @returns a refusal when there is no such voucher
 */
export async function prepareVoucher(
  preparation: Preparation,
  given: ChannelRecord,
): Promise<PreparedVoucher | Refusal> {
  const { ledger, candidate, limit } = preparation;
  const { amount, channel } = candidate;
  const no = (code: RefusalCode, text: string) => refuse(candidate, code, `Channel: ${text}`);
  const wanted = { amount, minDeposit: channel.minDeposit };
  let record = given;
  let plan = planVoucher(record, wanted);
  const isSettled = typeof plan !== "string" && plan.deposit.kind === "none";
  if (record.deposit !== undefined || record.isWithdrawing || !isSettled) {
    const seen = await lookAtChain(ledger, record);
    if (seen === undefined) return no("balance_unreadable", "no endpoint returned it");
    record = seen.record;
    if (record.isWithdrawing || seen.chain.withdrawal) {
      return no("unsupported_offer", "a withdrawal has begun");
    }
    plan = planVoucher(record, wanted);
  }
  if (typeof plan === "string") return no("unsupported_offer", plan);
  const { ceiling } = plan;
  if (ceiling > limit) return no("over_budget", "the call would sign more than its price");
  const deposit = await draftDeposit(preparation, record, plan);
  if (deposit !== undefined && "code" in deposit) return deposit;
  const isNewDeposit = plan.deposit.kind === "new";
  const next: ChannelRecord = {
    ...record,
    ceiling: larger(record.ceiling, ceiling),
    ...(isNewDeposit ? { deposit } : {}),
  };
  const booking = { next, ceiling: record.ceiling, asset: candidate.asset };
  const exceeded = await bookExposureOf(ledger, booking);
  if (exceeded !== undefined) return no("over_budget", exceeded);
  // Booked, stored and flushed, and only then signed.
  const { origin } = record;
  let refusal: Refusal | undefined;
  const stored = ledger.store.update(record.id, (before, all) => {
    refusal = isNewDeposit
      ? refuseLock(preparation, all(), { origin, amount: deposit?.amount ?? 0n })
      : undefined;
    if (refusal !== undefined) return before;
    const { usedAt, url } = given;
    return {
      ...before,
      ...{ usedAt, url },
      ceiling: larger(before.ceiling, ceiling),
      deposit: next.deposit,
    };
  });
  if (refusal !== undefined) await lowerExposure(ledger, stored);
  // The store may have a higher balance, for its limits alone.
  const { balance } = record;
  return refusal ?? { record: { ...stored, balance }, ceiling, deposit, isNewDeposit };
}

/** Forgets a deposit whose signature never left this process. */
export async function dropDeposit(
  ledger: ChannelLedger,
  { record: { id }, isNewDeposit }: PreparedVoucher,
): Promise<void> {
  if (!isNewDeposit) return;
  try {
    const stored = ledger.store.update(id, (before) => ({ ...before, deposit: undefined }));
    await lowerExposure(ledger, stored);
  } catch {
    // Fail closed: it counts until it has expired, or the room is needed.
  }
}

/** The deposit of a plan, with its funds and room; `undefined` if it needs none. */
async function draftDeposit(
  preparation: Preparation,
  record: ChannelRecord,
  { deposit }: VoucherPlan,
): Promise<OpenDeposit | Refusal | undefined> {
  const { context, candidate, ledger } = preparation;
  const { asset, way } = candidate;
  const seconds = Math.floor(context.now() / 1000);
  if (deposit.kind === "none") return undefined;
  if (deposit.kind === "repeat") {
    const { deposit: open } = record;
    if (open !== undefined && open.validBefore >= seconds + minDepositSeconds) return open;
    const text = "Channel: an earlier deposit is not decided yet";
    return refuse(candidate, "unsupported_offer", text);
  }
  const exceeded = refuseLock(preparation, ledger.store.list(), {
    origin: record.origin,
    amount: deposit.amount,
  });
  if (exceeded !== undefined) return exceeded;
  const funds = await context.chains.readBalance({
    network: asset.network,
    asset: asset.address,
    owner: record.config.payer,
  });
  if (funds === undefined || funds < deposit.amount) {
    const code = funds === undefined ? "balance_unreadable" : "insufficient_funds";
    return refuse(candidate, code, "Channel: the payer's funds for a deposit are not there");
  }
  return {
    amount: deposit.amount,
    salt: bytesToHex(context.randomBytes(32)),
    validBefore: Math.min(way.endAt(seconds), seconds + context.maxValiditySeconds),
    isReported: false,
  };
}

function refuseLock(
  { context, channels, candidate }: Preparation,
  all: readonly ChannelRecord[],
  { origin, amount }: { origin: string; amount: bigint },
): Refusal | undefined {
  const { asset } = candidate;
  const limits = channels.limitsOf(asset.pot);
  const exceeded = findExceededLock(all, { asset, amount, origin, limits }, context.assets);
  return exceeded === undefined ? undefined : refuse(candidate, "over_budget", exceeded);
}
