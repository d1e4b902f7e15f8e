import {
  type BlockHeader,
  blockByNumber,
  blockHeaderSchema,
  type RpcEndpointHandle,
  RpcResponseError,
} from "@coinslot/chain";
import {
  beginPayouts,
  type Payout,
  postPayouts,
  readPayoutProgress,
  rewindPayouts,
} from "../../ledger/channels/channel-payouts.ts";
import { isOld, isStuck } from "../../settle/evidence/is-stuck.ts";
import { isAwaited, noteAnswer } from "../../settle/evidence/silences.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { type PayoutRange, readPayouts } from "./read-payouts.ts";
import { type KnownReceivers, receiversOf } from "./receivers-of.ts";

/** Blocks of one request. */
const blocksAtOnce = 1_000;
/** Requests of one look to each endpoint, at most: the next look goes on. */
const maxRequests = 50;
const maxBlocks = blocksAtOnce * maxRequests;
const warnEveryMs = 600_000;
/** A head that is too low, or logs that are missing, may be so for a moment. */
const patienceMs = 600_000;

/** Memory of one process about payouts. Times are by the clock. */
interface PayoutMemory extends KnownReceivers {
  /** When heads far apart were reported last. */
  payoutsWarnedAt: number;
  /** Since when each look has found a head below the progress. */
  payoutsBehindSince: number | undefined;
  /** Since when each look has found no endpoint with the next logs. */
  payoutsLostSince: number | undefined;
}

/**
 * Begins the payouts of a ledger at the final block, before its first claim: what it claims is
 * newer. No other endpoint is asked: a block that is too high is found and set back.
 *
 * @throws RpcError, DatabaseError
 */
export async function startPayouts({
  context: { ledger },
  settlement: { network },
  place,
}: ChannelsContext): Promise<void> {
  if ((await readPayoutProgress(ledger, place)) !== undefined) return;
  const { number } = await network.watcher.read(network.pollMs);
  await beginPayouts(ledger, { ...place, block: Math.max(0, Number(number) - network.finalAfter) });
}

/**
 * Posts the money that the escrow has sent to receivers of claimed channels, once its block is
 * final. Anyone may have asked for it. It goes on where an earlier look ended. So a pause leaves
 * out only those whose logs no endpoint has any more.
 *
 * No row is taken back, and no block is read again. So each endpoint that has a say has to return
 * the same payouts, and to have the blocks. One that does not answer is awaited as in other votes.
 *
 * @param isStopped ends the look before its next request
 * @throws DatabaseError, and what is no fault of a node; what was posted stays
 */
export async function followPayouts(
  channels: ChannelsContext,
  memory: PayoutMemory,
  isStopped: () => boolean,
): Promise<void> {
  const { context, settlement, place } = channels;
  const { clock, ledger } = context;
  const { finalAfter } = settlement.network;
  const { payoutsBehindSince: behindSince = clock.now() } = memory;
  memory.payoutsBehindSince = undefined;
  let done = await readPayoutProgress(ledger, place);
  const voters = await findVoters(channels);
  if (voters.length === 0 || done === undefined) return;
  const heads = voters.map(({ head }) => Number(head.number));
  const final = Math.min(...heads) - finalAfter;
  if (final < 0) return;
  const isApart = Math.max(...heads) - Math.min(...heads) > finalAfter;
  if (done >= final && isApart) warnApart(channels, memory, { heads, done });
  // A node that synchronises has old heads alone.
  const isNew = voters.some(({ head }) => !isOld(head, ledger.now()));
  if (isNew && done > Math.min(...heads)) {
    memory.payoutsBehindSince = behindSince;
    const isLong = clock.now() - behindSince >= patienceMs;
    if (isLong) done = await goBack(channels, { done, heads, final });
  }
  if (done >= final) return;
  const known = await receiversOf(channels, memory);
  const receivers = [...known.values()].map(({ receiver }) => receiver);
  if (receivers.length === 0) {
    // A settle that matters comes after a claim of ours.
    await postPayouts(ledger, { ...place, after: done, to: final, payouts: [] });
    return;
  }
  for (let request = 0; request < maxRequests && done < final && !isStopped(); request += 1) {
    const range = { from: done + 1, to: Math.min(done + blocksAtOnce, final), receivers };
    const next = await readNext(channels, memory, { voters, range, final });
    if (next === undefined) return;
    if (!(await postPayouts(ledger, { ...place, after: done, ...next }))) return;
    done = next.to;
  }
}

/**
 * Sets the progress back. It begins by one node's head, which may stay too high. Or another head
 * stays too low: then what all have returned stays, and few blocks are read twice.
 *
 * @returns the block to go on after
 */
async function goBack(
  { context: { ledger, logger }, place }: ChannelsContext,
  { done, heads, final }: { done: number; heads: readonly number[]; final: number },
): Promise<number> {
  const lowest = Math.max(0, final - maxBlocks);
  if (done > Math.max(...heads)) {
    logger.error(
      { network: place.network, block: done, heads, final },
      "payouts were read above all heads: a node's was too high; they are read anew",
    );
    return rewindPayouts(ledger, { ...place, done, posted: { upTo: final }, lowest });
  }
  if (done - final > maxBlocks) return done;
  return rewindPayouts(ledger, { ...place, done, posted: { since: lowest, upTo: done }, lowest });
}

/**
 * Payouts up to a block; `undefined` while endpoints differ about them, or one is awaited. Blocks
 * whose logs no endpoint has any more have none: else no later payout would be posted.
 */
async function readNext(
  channels: ChannelsContext,
  memory: PayoutMemory,
  { voters, range, final }: { voters: readonly Voter[]; range: PayoutRange; final: number },
): Promise<{ to: number; payouts: Payout[] } | undefined> {
  const { clock, logger } = channels.context;
  const answers = await readByEach(channels, voters, range);
  if (!answers.every(({ isLost }) => isLost)) {
    memory.payoutsLostSince = undefined;
    const payouts = findAgreed(channels, answers, range);
    return payouts && { to: range.to, payouts };
  }
  memory.payoutsLostSince ??= clock.now();
  if (clock.now() - memory.payoutsLostSince < patienceMs) return undefined;
  const oldest = await findOldest(channels, voters, { ...range, to: final });
  if (oldest === undefined) return undefined;
  const { network } = channels.place;
  logger.error(
    { network, from: range.from, to: oldest - 1 },
    "payouts of these blocks are not posted: no endpoint has their logs any more",
  );
  return { to: oldest - 1, payouts: [] };
}

/**
 * The oldest block above `from` whose logs an endpoint has. `undefined`: none has those of `to`, so
 * it is no matter of their age, or one is awaited.
 */
async function findOldest(
  channels: ChannelsContext,
  voters: readonly Voter[],
  { from, to, receivers }: PayoutRange,
): Promise<number | undefined> {
  let [lost, oldest] = [from, to + 1];
  for (let block = to; oldest - lost > 1; block = Math.floor((lost + oldest) / 2)) {
    const answers = await readByEach(channels, voters, { from: block, to: block, receivers });
    if (answers.some(({ payouts }) => payouts !== undefined)) oldest = block;
    else if (block < to && answers.every(({ isLost }) => isLost)) lost = block;
    else return undefined;
  }
  return oldest;
}

/** A false head of an endpoint holds up each payout, and may do so for ever. */
function warnApart(
  { context: { clock, logger }, place: { network } }: ChannelsContext,
  memory: PayoutMemory,
  found: { heads: readonly number[]; done: number },
): void {
  if (clock.now() - memory.payoutsWarnedAt < warnEveryMs) return;
  memory.payoutsWarnedAt = clock.now();
  logger.warn(
    { network, ...found },
    "payouts wait while heads are far apart: an endpoint's is too low, or another's too high",
  );
}

interface Voter {
  endpoint: RpcEndpointHandle;
  head: BlockHeader;
}

/** Endpoints that have a say; none while one is awaited. */
async function findVoters({ context, settlement: { network } }: ChannelsContext): Promise<Voter[]> {
  const answers = await Promise.all(
    network.rpc.endpoints.map(async (endpoint) => {
      const subjects = ["head"];
      try {
        const head = blockHeaderSchema.parse(await endpoint.request(blockByNumber("latest")));
        noteAnswer(endpoint, subjects);
        return { endpoint, head };
      } catch (error) {
        const silent = { network, endpoint, subjects, error };
        return isAwaited(context, silent) ? "awaited" : "left out";
      }
    }),
  );
  if (answers.includes("awaited")) return [];
  const voters = answers.filter((answer) => typeof answer === "object");
  const heads = voters.map(({ head }) => head);
  return voters.filter(({ head }) => !isStuck(head, heads, context.ledger.now()));
}

interface Answer {
  payouts: Payout[] | undefined;
  /** It may still return them. */
  isAwaited: boolean;
  /** It has no say about them, or says that it cannot return them. */
  isLost: boolean;
}

/** The payouts of some blocks, as each endpoint shows them. */
function readByEach(
  { context, settlement: { network }, place }: ChannelsContext,
  voters: readonly Voter[],
  range: PayoutRange,
): Promise<Answer[]> {
  return Promise.all(
    voters.map(async ({ endpoint }) => {
      const subjects = ["payouts"];
      try {
        const payouts = await readPayouts(endpoint, { ...range, contract: place.contract });
        noteAnswer(endpoint, subjects);
        return { payouts, isAwaited: false, isLost: false };
      } catch (error) {
        const isStillAwaited = isAwaited(context, { network, endpoint, subjects, error });
        const isLost = !isStillAwaited || error instanceof RpcResponseError;
        return { payouts: undefined, isAwaited: isStillAwaited, isLost };
      }
    }),
  );
}

/** The payouts of all answers; `undefined` where these differ, or one is awaited. */
function findAgreed(
  { context: { logger }, place: { network } }: ChannelsContext,
  answers: readonly Answer[],
  { from, to }: PayoutRange,
): Payout[] | undefined {
  if (answers.some((answer) => answer.isAwaited)) return undefined;
  const [first, ...others] = answers.flatMap(({ payouts }) => (payouts ? [payouts] : []));
  if (first === undefined || others.every((other) => textOf(other) === textOf(first))) return first;
  logger.warn(
    { network, from, to },
    "endpoints differ about payouts; they are not posted, and read again",
  );
  return undefined;
}

function textOf(payouts: readonly Payout[]): string {
  const texts = payouts.map(({ receiver, token, amount, transaction, logIndex, block }) =>
    [receiver, token, amount, transaction, logIndex, block.number, block.hash].join(),
  );
  return texts.sort().join("\n");
}
