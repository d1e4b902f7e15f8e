import type { Booking } from "../budget/budget-state.ts";
import { findAsset, inBucket, type SpendableAsset } from "../budget/spending-policy.ts";
import { settledHistorySeconds } from "../chain/chain-reader.ts";
import type { PayingFetchContext } from "../paying-fetch-options.ts";
import { type ChannelRecord, exposureOf, larger, smaller } from "./channel-record.ts";
import type { ChannelStore } from "./channel-store.ts";
import { agreedSums, type ChannelOnChain, readByAll, readChannel } from "./read-channel.ts";

/** A store with the parts of a context that its changes need. */
export interface ChannelLedger {
  context: Pick<PayingFetchContext, "budget" | "assets" | "chains" | "now" | "wait">;
  store: ChannelStore;
}

/** A record with the balance to plan on, and what the chain shows. */
export interface SeenChannel {
  record: ChannelRecord;
  chain: ChannelOnChain;
}

/** Identity of the booking of a channel's exposure. Its nonce is the channel's id. */
function bookingOf(record: ChannelRecord) {
  const { id, network, config, origin } = record;
  return {
    id: { network, asset: config.token, payer: config.payer, nonce: id },
    host: new URL(origin).hostname,
  };
}

/**
 * Books what the seller may claim of a channel in its next state, before that state is stored.
 *
 * @param ceiling the stored one
 * @returns the limit that refuses it, in words
 */
export async function bookExposureOf(
  { context }: ChannelLedger,
  { next, ceiling, asset }: { next: ChannelRecord; ceiling: bigint; asset: SpendableAsset },
): Promise<string | undefined> {
  const amount = exposureOf(next);
  if (amount === 0n) return undefined;
  const booked = await context.budget.bookExposure({ ...bookingOf(next), asset, amount, ceiling });
  return booked.ok ? undefined : booked.message;
}

/**
 * Lowers the booking to the exposure of a stored state: all that was ever signed is stored first.
 * A kill before it is made good once the room is needed.
 */
export async function lowerExposure(
  { context }: ChannelLedger,
  stored: ChannelRecord,
): Promise<void> {
  const asset = findAsset(context.assets, stored.network, stored.config.token);
  if (asset === undefined) return;
  const exposureAt = (ceiling: bigint) => exposureOf(stored, ceiling);
  await context.budget.lowerExposure({ ...bookingOf(stored), asset, exposureAt });
}

/**
 * Returns whether more is booked for a channel than the exposure of its stored state. A state that
 * is older than the booking says nothing of it: neither its ceiling nor its balance.
 */
export function isBookedAbove(
  { context }: ChannelLedger,
  stored: ChannelRecord,
  booked: ReadonlyMap<string, Booking>,
): boolean {
  const asset = findAsset(context.assets, stored.network, stored.config.token);
  const booking = booked.get(stored.id);
  if (asset === undefined || booking?.pot !== asset.pot.name) return false;
  const isOlder = stored.ceiling < (booking.ceiling ?? 0n);
  return !isOlder && booking.amount > inBucket(asset, exposureOf(stored));
}

/**
 * Takes over a charged sum. Its new part counts as spent today, in the budget first: a kill in
 * between counts it twice, and never not at all.
 */
export async function learnCharged(
  { context, store }: ChannelLedger,
  record: ChannelRecord,
  charged: bigint,
): Promise<ChannelRecord> {
  const fresh = charged - record.spent;
  const asset = findAsset(context.assets, record.network, record.config.token);
  if (fresh > 0n && asset !== undefined) {
    await context.budget.spendExposure({ ...bookingOf(record), asset, amount: fresh });
  }
  return store.update(record.id, (stored) => ({
    ...stored,
    charged,
    spent: larger(stored.spent, charged),
  }));
}

/**
 * Takes over the state of the chain. An open deposit ends once its authorization is used, by each
 * endpoint that answers. It ends with its time as well, used or not, once all endpoints say so.
 * An endpoint whose head stands still is as good as away.
 *
 * One endpoint may deny a deposit, to be shown another one, or show as claimed what was not
 * signed. So the highest balance of all endpoints counts, and the lowest claimed sum. More than was
 * signed here is claimed once each endpoint has returned it: another one may just be away. The
 * store keeps the balance before, for `locked`, until endpoints of two hosts agree that it is gone.
 * The booking of the exposure falls with it.
 *
 * @param options.hasBegun true while a withdrawal is in a block that no endpoint may show yet
 * @returns the record with the balance to plan on, and the sums that count; `undefined` when no
 * endpoint returned the channel
 */
export async function lookAtChain(
  ledger: ChannelLedger,
  record: ChannelRecord,
  { hasBegun = false }: { hasBegun?: boolean | undefined } = {},
): Promise<SeenChannel | undefined> {
  const { context, store } = ledger;
  const nodes = context.chains.nodesOf(record.network);
  const known = store.find(record.id) ?? record;
  const { ceiling, deposit } = known;
  const first = await readChannel(nodes, known);
  if (first === undefined) return undefined;
  const now = Math.floor(context.now() / 1000);
  const isPast = deposit !== undefined && now >= deposit.validBefore;
  const asksAll =
    isPast ||
    first.isDepositUsed ||
    first.balance < known.balance ||
    first.claimed > ceiling ||
    (known.isWithdrawing && first.withdrawal === undefined);
  const all = asksAll ? await readByAll(nodes, known) : [];
  const seen = withoutStuck([first, ...all], now);
  const isByAll = seen.length > nodes.length;
  const isProven = isByAll && context.chains.hasWitnesses(record.network);
  const sums = agreedSums(seen);
  const added = deposit?.amount ?? 0n;
  const isUse =
    seen.every((each) => each.isDepositUsed) && (isByAll || sums.balance >= known.balance + added);
  const isExpired =
    isPast && isByAll && seen.every(({ time }) => time >= (deposit?.validBefore ?? 0));
  const isOver = isUse || isExpired;
  const { balance } = sums;
  // Endpoints that differ on an open deposit: stored by itself, and not in the balance too.
  const isDisputed = !isOver && seen.some((each) => each.isDepositUsed);
  const kept = isDisputed ? smaller(balance, larger(known.balance, balance - added)) : balance;
  const mayBeThere = known.balance + (isOver ? added : 0n);
  const claimed = isByAll ? sums.claimed : smaller(sums.claimed, ceiling);
  const chain = { ...(seen[0] ?? first), ...sums, claimed };
  const after = store.update(record.id, (stored) => ({
    ...stored,
    balance: isProven ? kept : larger(kept, mayBeThere),
    claimed,
    deposit: isOver ? undefined : stored.deposit,
    // The first one may lag. The word of another keeps what was begun here, and begins nothing.
    isWithdrawing:
      chain.withdrawal !== undefined ||
      (stored.isWithdrawing &&
        (hasBegun || seen.some(({ withdrawal }) => withdrawal !== undefined))),
  }));
  if (exposureOf(after) < exposureOf(known)) await lowerExposure(ledger, after);
  return { record: { ...after, balance }, chain };
}

/** Polls for a refund or a withdrawal: an endpoint may lag the one that has executed it. */
export const maxPolls = 20;
const pollIntervalMs = 500;

/** Looks at the chain until it shows something; `undefined` where it does not. */
export async function awaitChain(
  ledger: ChannelLedger,
  wanted: {
    record: ChannelRecord;
    polls: number;
    isThere: (seen: SeenChannel) => boolean;
    /** As for `lookAtChain`. */
    hasBegun?: boolean;
  },
): Promise<SeenChannel | undefined> {
  const { record, polls, isThere, hasBegun } = wanted;
  for (let count = 1; ; count += 1) {
    const seen = await lookAtChain(ledger, record, { hasBegun });
    if (seen !== undefined && isThere(seen)) return seen;
    if (count >= polls) return undefined;
    await ledger.context.wait(pollIntervalMs);
  }
}

/** Leaves out endpoints whose head is far behind the newest one. The own clock bounds that one. */
function withoutStuck(all: readonly ChannelOnChain[], now: number): ChannelOnChain[] {
  const newest = Math.min(now, Math.max(...all.map(({ time }) => time)));
  return all.filter(({ time }) => time + settledHistorySeconds >= newest);
}

/**
 * Stores the balance that all endpoints show, of one host as well: this payer has asked for the
 * rest, so it may have fallen. The largest counts. What no balance covers cannot be claimed, and
 * takes no room of the budget.
 */
export async function freeExposure(ledger: ChannelLedger, record: ChannelRecord): Promise<void> {
  const { context, store } = ledger;
  const nodes = context.chains.nodesOf(record.network);
  const all = await readByAll(nodes, record);
  if (all.length < nodes.length) return;
  const { balance } = agreedSums(all);
  await lowerExposure(
    ledger,
    store.update(record.id, (stored) => ({ ...stored, balance })),
  );
}
