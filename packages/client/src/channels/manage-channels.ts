import type { Address, Hex, Network } from "@coinslot/protocol";
import type { PayingFetchContext } from "../paying-fetch-options.ts";
import { PaymentError } from "../payment-error.ts";
import type { RepeatableRequest } from "../send/repeatable-request.ts";
import type { ChannelLedger } from "./channel-ledger.ts";
import { type ChannelRecord, lockedIn } from "./channel-record.ts";
import type { ChannelStore } from "./channel-store.ts";
import { type ChannelRefund, findOfferedChannels, refundOnLane } from "./refund-channel.ts";
import { type ChannelWithdrawal, withdrawOnLane } from "./withdraw-channel.ts";

/** A payment channel of this payer. Amounts are in the token's smallest unit. */
export interface ChannelSummary {
  id: Hex;
  network: Network;
  token: Address;
  payer: Address;
  /** The seller's address and origin, and the URL of the last purchase. */
  receiver: Address;
  origin: string;
  url: string;
  lane: number;
  /** The most that the seller may ever claim, capped by the balance. */
  ceiling: bigint;
  charged: bigint;
  /**
   * By the contract, when it was read last; with what is claimed. One host alone lowers it only
   * where this payer has asked for a refund or a withdrawal.
   */
  balance: bigint;
  claimed: bigint;
  /** Of a deposit that the chain does not show yet. */
  depositing: bigint;
  /** In escrow and not charged: a refund or a withdrawal brings it back. */
  locked: bigint;
  isWithdrawing: boolean;
  /** Seconds of a withdrawal without the seller. */
  withdrawDelay: number;
  /** Unix milliseconds of the last purchase. */
  usedAt: number;
}

/** Sums up a record. */
export function summarize(record: ChannelRecord): ChannelSummary {
  const { id, network, config, origin, url, lane, ceiling, charged, balance, claimed } = record;
  const { payer, token, receiver, withdrawDelay } = config;
  return {
    ...{ id, network, payer, token, receiver, origin, url, lane },
    ...{ ceiling, charged, balance, claimed, withdrawDelay },
    depositing: record.deposit?.amount ?? 0n,
    locked: lockedIn(record),
    isWithdrawing: record.isWithdrawing,
    usedAt: record.usedAt,
  };
}

/** Lists the channels of this payer. */
export async function listChannels(context: PayingFetchContext): Promise<ChannelSummary[]> {
  const { store } = await openChannels(context);
  return store
    .list()
    .filter((record) => isOwn(context, record))
    .map(summarize);
}

/**
 * Asks the seller at a URL for the money of all its channels, one after the other. Those of which
 * it does not give it back are withdrawn without it, if that is wanted.
 */
export async function refundChannels(
  context: PayingFetchContext,
  wanted: { request: RepeatableRequest; orWithdraw: boolean; id?: string | undefined },
): Promise<(ChannelRefund | ChannelWithdrawal)[]> {
  const { request, orWithdraw } = wanted;
  const { store, locks } = await openChannels(context);
  const ledger: ChannelLedger = { context, store };
  const { origin } = request.url;
  const own = store
    .list()
    .filter((record) => record.origin === origin && isOwn(context, record))
    .filter(({ id }) => wanted.id === undefined || wanted.id.toLowerCase() === id);
  if (own.length === 0) return [];
  const { candidates, url } = await findOfferedChannels(context, request);
  const results: (ChannelRefund | ChannelWithdrawal)[] = [];
  for (const { id } of own) {
    const held = await locks.acquire([id], request.signal);
    try {
      const record = store.find(id);
      // Another process may have forgotten it, since nothing was signed for it.
      if (record === undefined) continue;
      const asked = { record, candidates, request, url };
      const refund = await refundOnLane(context, ledger, asked);
      const isDone = refund.state === "refunded" || refund.state === "nothing";
      let result: ChannelRefund | ChannelWithdrawal = refund;
      if (!isDone && orWithdraw) {
        const withdrawal = await withdrawOnLane(context, ledger, store.find(id) ?? record);
        result = refund.amount > 0n ? { refunded: refund.amount, ...withdrawal } : withdrawal;
      }
      results.push(withDeposit(store, result));
    } finally {
      held.release();
    }
  }
  return results;
}

/** Takes the next step of the withdrawal of one channel. */
export async function withdrawChannel(
  context: PayingFetchContext,
  id: string,
): Promise<ChannelWithdrawal> {
  const { store, locks } = await openChannels(context);
  const known = mustFind(store.find(id));
  if (!isOwn(context, known)) mustFind(undefined);
  const held = await locks.acquire([known.id], undefined);
  try {
    const record = mustFind(store.find(id));
    return withDeposit(store, await withdrawOnLane(context, { context, store }, record));
  } finally {
    held.release();
  }
}

/** Adds the end of a deposit that is still open. */
function withDeposit<Result extends ChannelRefund | ChannelWithdrawal>(
  store: ChannelStore,
  result: Result,
): Result {
  const depositUntil = store.find(result.id)?.deposit?.validBefore;
  return depositUntil === undefined ? result : { depositUntil, ...result };
}

async function openChannels({ channels }: PayingFetchContext) {
  if (channels === undefined) {
    throw new PaymentError("channel_unknown", "createPayingFetch was given no `channels`");
  }
  return channels.open();
}

function isOwn({ account }: PayingFetchContext, { config }: ChannelRecord): boolean {
  return config.payer === account.address.toLowerCase();
}

function mustFind(record: ChannelRecord | undefined): ChannelRecord {
  if (record !== undefined) return record;
  throw new PaymentError(
    "channel_unknown",
    "The file of `channels` has no such channel of this payer",
  );
}
