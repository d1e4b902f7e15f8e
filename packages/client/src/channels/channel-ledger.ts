import { depositNonce } from "@coinslot/protocol";
import { findAsset, type SpendableAsset } from "../budget/spending-policy.ts";
import type { PayingFetchContext } from "../paying-fetch-options.ts";
import { type ChannelRecord, exposureOf, larger, smaller } from "./channel-record.ts";
import type { ChannelStore } from "./channel-store.ts";
import { agreedSums, type ChannelOnChain, readByAll, readChannel } from "./read-channel.ts";

/** A store with the parts of a context that its changes need. */
export interface ChannelLedger {
  context: Pick<PayingFetchContext, "budget" | "assets" | "chains" | "now">;
  store: ChannelStore;
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
 * Books what the seller may claim of a channel in this state, before that state is stored.
 *
 * @returns the limit that refuses it, in words
 */
export async function bookExposureOf(
  { context }: ChannelLedger,
  record: ChannelRecord,
  asset: SpendableAsset,
): Promise<string | undefined> {
  const amount = exposureOf(record);
  if (amount === 0n) return undefined;
  const booked = await context.budget.bookExposure({ ...bookingOf(record), asset, amount });
  return booked.ok ? undefined : booked.message;
}

/** Lowers the booking to what this state leaves, before that state is stored. Asks no node. */
export async function lowerExposure(
  { context }: ChannelLedger,
  before: ChannelRecord,
  after: ChannelRecord,
): Promise<void> {
  const asset = findAsset(context.assets, after.network, after.config.token);
  const amount = exposureOf(after);
  if (asset === undefined || amount >= exposureOf(before)) return;
  if (amount === 0n) await context.budget.release(after.id);
  else await context.budget.bookExposure({ ...bookingOf(after), asset, amount });
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
 * endpoint that answers. It ends unused only if none says that it can still be executed.
 *
 * One endpoint may deny a deposit, to be shown another one, or show as claimed what was not
 * signed. So the highest balance of all endpoints counts, and the lowest claimed sum. More than was
 * signed here is claimed once each endpoint has returned it: another one may just be away. The
 * store keeps the balance before, for `locked`, until endpoints of two hosts agree that it is gone.
 *
 * @returns `undefined` when no endpoint returned the channel
 */
export async function lookAtChain(
  ledger: ChannelLedger,
  record: ChannelRecord,
): Promise<{ record: ChannelRecord; chain: ChannelOnChain } | undefined> {
  const { context, store } = ledger;
  const nodes = context.chains.nodesOf(record.network);
  const first = await readChannel(nodes, record);
  if (first === undefined) return undefined;
  const isDepositDead = await isDead(context, record);
  const known = store.find(record.id) ?? record;
  const { ceiling, deposit } = known;
  const { isDepositUsed } = first;
  const sumOf = (isOver: boolean) => known.balance + (isOver && deposit ? deposit.amount : 0n);
  const isLower = first.balance < sumOf(isDepositUsed || isDepositDead);
  const asksAll = isDepositUsed || isLower || first.claimed > ceiling;
  const all = asksAll ? await readByAll(nodes, record) : [first];
  const sums = agreedSums([first, ...all]);
  const isByAll = all.length === nodes.length;
  const claimed = isByAll ? sums.claimed : smaller(sums.claimed, ceiling);
  const chain = { ...first, ...sums, claimed };
  // A deposit that one endpoint calls used, and another one unused, may still be executed.
  const isUse = isDepositUsed && (isByAll || !isLower) && all.every((each) => each.isDepositUsed);
  const isOver = isUse || isDepositDead;
  const mayBeThere = sumOf(isOver);
  const isProven = isByAll && context.chains.hasWitnesses(record.network);
  const { balance } = chain;
  const isLess = balance < mayBeThere;
  if (isProven && isOver && !isUse) {
    await lowerExposure(ledger, known, { ...known, balance, deposit: undefined });
  }
  const after = store.update(record.id, (stored) => ({
    ...stored,
    balance: isLess && !isProven ? mayBeThere : balance,
    claimed,
    deposit: isOver ? undefined : stored.deposit,
    isWithdrawing: stored.isWithdrawing && chain.withdrawal !== undefined,
  }));
  return { record: { ...after, balance }, chain };
}

/** Returns whether an open deposit can certainly not be executed any more, and never was. */
async function isDead(
  { chains, now }: ChannelLedger["context"],
  { id, network, config, deposit }: ChannelRecord,
): Promise<boolean> {
  if (deposit === undefined || now() < deposit.validBefore * 1000) return false;
  const nonce = depositNonce({ channelId: id, salt: deposit.salt });
  const asked = { network, asset: config.token, payer: config.payer, nonce };
  const { validBefore } = deposit;
  const isExecutable = await chains.isExecutable({ id: asked, validBefore });
  return isExecutable === false && (await chains.isUsed(asked)) === false;
}

/**
 * Stores the balance that all endpoints show, of one host as well: this payer has asked for the
 * rest, so it may have fallen. The largest counts.
 *
 * @returns `undefined` where an endpoint did not return it
 */
async function acceptBalance(
  { context, store }: ChannelLedger,
  record: ChannelRecord,
): Promise<bigint | undefined> {
  const nodes = context.chains.nodesOf(record.network);
  const all = await readByAll(nodes, record);
  if (all.length < nodes.length) return undefined;
  const { balance } = agreedSums(all);
  store.update(record.id, (stored) => ({ ...stored, balance }));
  return balance;
}

/**
 * Books the exposure anew after the balance has fallen: what no balance covers cannot be claimed.
 */
export async function freeExposure(ledger: ChannelLedger, record: ChannelRecord): Promise<void> {
  const { context } = ledger;
  const asset = findAsset(context.assets, record.network, record.config.token);
  const balance = await acceptBalance(ledger, record);
  if (asset === undefined || balance === undefined) return;
  const amount = exposureOf({ ...record, balance });
  const booking = bookingOf(record);
  if (amount === 0n) await context.budget.release(record.id);
  else if (amount < exposureOf(record)) {
    await context.budget.bookExposure({ ...booking, asset, amount });
  }
}
