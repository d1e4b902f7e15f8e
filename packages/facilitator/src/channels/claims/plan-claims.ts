import type { Address, Hex } from "@coinslot/protocol";
import {
  ClaimOvertakenError,
  concludeClaims,
  findSentClaims,
  type SentClaim,
} from "../../ledger/channels/channel-claims.ts";
import { type ChannelState, readChannelState } from "../../ledger/channels/channel-state.ts";
import { recordRefusals } from "../../ledger/channels/claim-refusals.ts";
import { type ClaimableChannel, eachClaimable } from "../../ledger/channels/claimable.ts";
import { backOff, firstRestMs } from "../back-off.ts";
import { type ClaimSigner, maxClaimRows } from "../channel-settings.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { isActive } from "./channel-activity.ts";
import { type ClaimCandidate, chooseClaims } from "./choose-claims.ts";
import { divideRows, isLastChance, readClaimTime } from "./claim-deadlines.ts";
import { type ClaimMemory, halveRows } from "./claim-memory.ts";
import { isResting, maxRestMsOf, restPaid } from "./claim-rests.ts";
import { dropPaid } from "./drop-paid.ts";
import { measureClaims } from "./measure-claims.ts";
import { channelOf, restSightings, seeWithdrawals } from "./see-withdrawals.ts";
import { byAuthorizer, type ClaimOutcome, sendClaims } from "./send-claims.ts";
import { type RefusedRow, tryClaims } from "./try-claims.ts";

/** A plan and its claims. */
export interface ClaimPlan {
  /** Channels with unclaimed money. */
  dues: number;
  /** Rows that are stored with their transactions, and on their way. */
  sent: ClaimCandidate[];
  refused: RefusedRow[];
  /** Why rows wait: `no_key`, or as `ClaimOutcome` names it. */
  waiting: Exclude<ClaimOutcome, "stored"> | "no_key" | undefined;
  /** A claim is on its way, a payer withdraws unclaimed money, or charges come: see `isActive`. */
  isActive: boolean;
}

/**
 * Claims what is due: choose, try each row alone, sign, store, send. Ends claims that the chain has
 * paid finally, or whose transaction has ended without them: these are due again.
 *
 * @param options `isAll`: all that is unclaimed and worth its gas, also rows that rest; `only`: no
 * other channel than this one
 * @throws RpcError, DatabaseError; what was stored stays
 */
export async function planClaims(
  channels: ChannelsContext,
  memory: ClaimMemory,
  { isAll = false, only }: { isAll?: boolean; only?: Hex | undefined } = {},
): Promise<ClaimPlan> {
  const { context, settings } = channels;
  const { ledger } = context;
  const dues = await readDues(channels);
  const byId = new Map(dues.map((due) => [due.channel.channelId, due]));
  const flying = await endClaims(channels, memory, byId);
  forgetEnded(memory, byId, context.clock.now());
  for (const { config } of dues) {
    memory.receivers.set(`${config.receiver}/${config.token}`, config);
  }
  const unpaid = await dropPaid(channels, memory, dues);
  // Before a sighting is taken: it would be lost where this fails.
  const time = await readClaimTime(channels);
  const left = seeWithdrawals(channels, memory, unpaid);
  measureClaims(channels, left);
  const maxRows = maxClaimRows;
  const now = ledger.now();
  const chosen = chooseClaims({ dues: left, ...flying, settings, now, time, maxRows, isAll });
  const isFlying = flying.inFlight.size > 0 || flying.inRefunds.size > 0;
  const plan: ClaimPlan = {
    dues: left.length,
    sent: [],
    refused: [],
    waiting: undefined,
    isActive:
      isFlying || memory.seen.size > 0 || left.some((due) => isActive(due, { settings, now })),
  };
  const wanted = chosen.filter(({ channel }) => only === undefined || channel.channelId === only);
  try {
    for (const [authorizer, rows] of byAuthorizer(wanted)) {
      await claimRows(channels, memory, { authorizer, rows, time, isAll }, plan);
    }
  } finally {
    const answered = [...plan.sent, ...plan.refused.map(({ candidate }) => candidate)];
    restSightings(channels, memory, { dues: left, answered });
  }
  if (plan.sent.length > 0) plan.isActive = true;
  return plan;
}

/** Forgets what was remembered of channels without unclaimed money. Their rests last their time. */
function forgetEnded(
  { paid, rests, disagreed, sighted, askedAt }: ClaimMemory,
  dues: ReadonlyMap<Hex, unknown>,
  now: number,
): void {
  const ids = new Set<string>(dues.keys());
  for (const each of [paid, askedAt]) {
    for (const id of each.keys()) if (!ids.has(id)) each.delete(id);
  }
  for (const each of [rests, disagreed]) {
    for (const [id, { until }] of each) if (!ids.has(id) && until <= now) each.delete(id);
  }
  for (const [id, { until }] of sighted) {
    if (!ids.has(channelOf(id)) && until <= now) sighted.delete(id);
  }
}

async function readDues({ context, place }: ChannelsContext): Promise<ClaimableChannel[]> {
  const all: ClaimableChannel[] = [];
  for await (const due of eachClaimable(context.ledger, place)) all.push(due);
  return all;
}

/** The highest sum that an open transaction claims, by channel. */
interface FlyingClaims {
  inFlight: Map<Hex, bigint>;
  /** In a refund's transaction, which is in no haste. */
  inRefunds: Map<Hex, bigint>;
}

/**
 * Ends claims by the mirror of their channels and by their transactions.
 *
 * @returns those that are on their way
 */
async function endClaims(
  { context: { ledger, logger, clock }, place, metrics }: ChannelsContext,
  memory: ClaimMemory,
  dues: ReadonlyMap<Hex, ClaimableChannel>,
): Promise<FlyingClaims> {
  const flying: FlyingClaims = { inFlight: new Map(), inRefunds: new Map() };
  const ended: (SentClaim & { isDone: boolean })[] = [];
  for (const claim of await findSentClaims(ledger, place.network)) {
    if (claim.contract !== place.contract) continue;
    const known = dues.get(claim.channelId)?.state;
    const state = known ?? (await readChannelState(ledger, claim));
    const verdict = judge(claim, state);
    if (verdict === "flying") {
      const sums = claim.isRefund ? flying.inRefunds : flying.inFlight;
      const before = sums.get(claim.channelId) ?? 0n;
      if (claim.totalClaimed > before) sums.set(claim.channelId, claim.totalClaimed);
    } else if (verdict !== "paid") ended.push({ ...claim, isDone: verdict === "done" });
  }
  if (ended.length === 0) return flying;
  await concludeClaims(ledger, ended);
  const { network } = place;
  const reverted = new Map<string, number>();
  for (const { isDone, channelId, totalClaimed, transactionId, transaction } of ended) {
    metrics.claims.inc({ network, outcome: isDone ? "done" : "failed" });
    if (isDone && totalClaimed > (memory.paid.get(channelId) ?? -1n)) {
      memory.paid.set(channelId, totalClaimed);
      memory.rests.delete(channelId);
    }
    if (isDone || transaction.state !== "included") continue;
    const maxMs = maxRestMsOf(dues.get(channelId));
    backOff(memory.rests, channelId, { now: clock.now(), maxMs });
    reverted.set(transactionId, (reverted.get(transactionId) ?? 0) + 1);
  }
  halveRows(memory, Math.max(0, ...reverted.values()));
  if (reverted.size > 0) {
    logger.warn(
      { network, transactions: reverted.size },
      "a claim was reverted, or paid less than it asked for; its channels are due again",
    );
  } else memory.maxRows.clear();
  return flying;
}

/** `paid`: the head has it, and it is not final. A node that shows the reverse of that lies. */
function judge(
  { totalClaimed, transaction }: SentClaim,
  state: ChannelState | undefined,
): "flying" | "paid" | "done" | "failed" {
  if (state !== undefined && state.totalClaimed >= totalClaimed) {
    return (state.final?.totalClaimed ?? 0n) >= totalClaimed ? "done" : "paid";
  }
  if (transaction.state === "gone") return "failed";
  if (!("blockNumber" in transaction) || state === undefined) return "flying";
  return transaction.blockNumber > state.block.number ? "flying" : "failed";
}

async function claimRows(
  channels: ChannelsContext,
  memory: ClaimMemory,
  options: {
    authorizer: Address;
    rows: readonly ClaimCandidate[];
    time: number;
    isAll: boolean;
  },
  plan: ClaimPlan,
): Promise<void> {
  const { authorizer, rows, time, isAll } = options;
  const { context, settings, settlement, place, metrics } = channels;
  const { ledger, logger, clock } = context;
  const { network } = place;
  const { maxInFlight: maxAlone } = settlement.network;
  const signer = settings.signers.find(({ address }) => address === authorizer);
  if (signer === undefined) {
    plan.waiting = "no_key";
    if (memory.reported.has(authorizer)) return;
    memory.reported.add(authorizer);
    logger.error(
      { network, authorizer, channels: rows.length },
      "channels have unclaimed money, and the key of their receiverAuthorizer is not configured",
    );
    return;
  }
  const now = clock.now();
  // A sighting has rests of its own: a node that refuses the row would have it wait for ever.
  const awake = rows.filter(
    (row) => isAll || row.sighting !== undefined || !isResting(memory.rests, row, now),
  );
  const maxRows = memory.maxRows.get(authorizer) ?? maxClaimRows;
  for (let from = 0; from < awake.length; from += maxRows) {
    const part = awake.slice(from, from + maxRows);
    const { passed, refused } = await tryClaims(channels, part);
    const alone: ClaimCandidate[] = [];
    for (const each of refused) {
      reportRefused(channels, each);
      plan.refused.push(each);
      if (isLastChance(each, time)) alone.push(each.candidate);
      const maxMs = maxRestMsOf(each.candidate);
      backOff(memory.rests, each.candidate.channel.channelId, { now, maxMs });
    }
    const at = ledger.now();
    await recordRefusals(
      ledger,
      refused.map(({ candidate, error }) => ({ ...candidate.channel, error, at })),
    );
    const batches = divideRows(passed, { time, claimCost: settings.claimCost, maxAlone });
    for (const planned of [...batches, ...alone.map((row) => [row])]) {
      const { outcome, batch } = await sendPlanned(channels, memory, { signer, rows: planned });
      if (outcome === "stored") {
        memory.maxRows.set(authorizer, maxRows);
        metrics.claims.inc({ network, outcome: "sent" }, batch.length);
        plan.sent.push(...batch);
        restPaid(memory, batch, now);
        continue;
      }
      const isDue = batch.some(({ deadline }) => deadline !== undefined);
      const level = isDue ? "error" : "warn";
      logger[level]({ network, because: outcome, rows: batch.length }, "a claim waits; retrying");
      plan.waiting = outcome;
      return;
    }
  }
}

/**
 * Sends rows as a claim. Those whose charge was lowered meanwhile rest, and the others go without
 * them.
 */
async function sendPlanned(
  channels: ChannelsContext,
  memory: ClaimMemory,
  { signer, rows }: { signer: ClaimSigner; rows: readonly ClaimCandidate[] },
): Promise<{ outcome: ClaimOutcome; batch: readonly ClaimCandidate[] }> {
  try {
    return { outcome: await sendClaims(channels, signer, rows), batch: rows };
  } catch (error) {
    if (!(error instanceof ClaimOvertakenError)) throw error;
    const { channelIds } = error;
    const left = rows.filter(({ channel }) => !channelIds.includes(channel.channelId));
    if (left.length === rows.length) throw error;
    for (const channelId of channelIds) {
      const now = channels.context.clock.now();
      backOff(memory.rests, channelId, { now, maxMs: firstRestMs });
    }
    if (left.length === 0) return { outcome: "stored", batch: [] };
    return sendPlanned(channels, memory, { signer, rows: left });
  }
}

function reportRefused(
  { context: { logger }, metrics, place: { network } }: ChannelsContext,
  { candidate, error }: RefusedRow,
): void {
  const { channel, gain, deadline } = candidate;
  metrics.claims.inc({ network, outcome: "refused" });
  logger.error(
    { network, channel: channel.channelId, unclaimed: `${gain}`, error, deadline },
    "a channel cannot be claimed at the moment; it is left out of the claim",
  );
}
