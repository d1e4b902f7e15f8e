import {
  type BlockHeader,
  blockByNumber,
  blockHeaderSchema,
  type RpcEndpointHandle,
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
import { withSignal } from "../../settle/evidence/with-signal.ts";
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
const reportLostEveryMs = 3_600_000;

/** Memory of one process about payouts. Times are by the clock. */
interface PayoutMemory extends KnownReceivers {
  /** When heads far apart were reported last. */
  payoutsWarnedAt: number;
  /** Since when each look has found a head below the progress. */
  payoutsBehindSince: number | undefined;
  /** When missing logs are reported next; `undefined` where none are missing. */
  payoutsLostAt: number | undefined;
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
 * final. Anyone may have asked for it. It goes on where an earlier look ended, so none is left out
 * after a pause. Where no endpoint returns the logs of a block, it waits.
 *
 * No row is taken back, and no block is read again. So each endpoint that has a say has to return
 * the same payouts, and to have the blocks. One that does not answer is awaited as in other votes.
 *
 * @param signal ends the look, by its reason
 * @throws DatabaseError, and what is no fault of a node; what was posted stays
 */
export async function followPayouts(
  channels: ChannelsContext,
  memory: PayoutMemory,
  signal: AbortSignal,
): Promise<void> {
  const { context, settlement, place } = channels;
  const { clock, ledger } = context;
  const { finalAfter } = settlement.network;
  const { payoutsBehindSince: behindSince = clock.now() } = memory;
  memory.payoutsBehindSince = undefined;
  let done = await readPayoutProgress(ledger, place);
  const voters = await findVoters(channels, signal);
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
  // After the heads were read: a later claim's money comes in later blocks.
  const known = await receiversOf(channels, memory);
  const receivers = [...known.values()].map(({ receiver }) => receiver);
  if (receivers.length === 0) {
    // A settle that matters comes after a claim of ours.
    await postPayouts(ledger, { ...place, after: done, to: final, payouts: [] });
    return;
  }
  for (let request = 0; request < maxRequests && done < final; request += 1) {
    const to: number = Math.min(done + blocksAtOnce, final);
    const range = { from: done + 1, to, receivers };
    const payouts = await readAgreed(channels, memory, { voters, range, signal });
    if (payouts === undefined) return;
    if (!(await postPayouts(ledger, { ...place, after: done, to, payouts }))) return;
    done = to;
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
async function findVoters(
  { context, settlement: { network } }: ChannelsContext,
  signal: AbortSignal,
): Promise<Voter[]> {
  const answers = await Promise.all(
    network.rpc.endpoints.map(async (endpoint) => {
      const subjects = ["head"];
      try {
        const answer = await endpoint.request(blockByNumber("latest"), { signal });
        const head = blockHeaderSchema.parse(answer);
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

/** The payouts of some blocks; `undefined` where endpoints differ about them, or one is awaited. */
async function readAgreed(
  { context, settlement: { network }, place }: ChannelsContext,
  memory: PayoutMemory,
  { voters, range, signal }: { voters: readonly Voter[]; range: PayoutRange; signal: AbortSignal },
): Promise<Payout[] | undefined> {
  const answers = await Promise.all(
    voters.map(async ({ endpoint }) => {
      const subjects = ["payouts"];
      try {
        const rpc = withSignal(endpoint, signal);
        const payouts = await readPayouts(rpc, { ...range, contract: place.contract });
        noteAnswer(endpoint, subjects);
        return payouts;
      } catch (error) {
        const silent = { network, endpoint, subjects, error };
        return isAwaited(context, silent) ? "awaited" : "left out";
      }
    }),
  );
  const [first, ...others] = answers.filter((answer) => typeof answer === "object");
  if (first === undefined) reportLost(context, memory, { network: place.network, range });
  else memory.payoutsLostAt = undefined;
  if (answers.includes("awaited")) return undefined;
  if (first === undefined || others.every((other) => textOf(other) === textOf(first))) return first;
  const { from, to } = range;
  context.logger.warn(
    { network: place.network, from, to },
    "endpoints differ about payouts; they are not posted, and read again",
  );
  return undefined;
}

/** Progress waits: a block that is left out would be missing in the books for good. */
function reportLost(
  { clock, logger }: ChannelsContext["context"],
  memory: PayoutMemory,
  { network, range: { from, to } }: { network: string; range: PayoutRange },
): void {
  memory.payoutsLostAt ??= clock.now() + patienceMs;
  if (clock.now() < memory.payoutsLostAt) return;
  memory.payoutsLostAt = clock.now() + reportLostEveryMs;
  logger.error(
    { network, from, to },
    "payouts wait: no endpoint returns the logs of these blocks; add a node that has them to rpcUrls",
  );
}

function textOf(payouts: readonly Payout[]): string {
  const texts = payouts.map(({ receiver, token, amount, transaction, logIndex, block }) =>
    [receiver, token, amount, transaction, logIndex, block.number, block.hash].join(),
  );
  return texts.sort().join("\n");
}
