import { plausibleBlocks } from "@coinslot/chain";
import { findOtherRefunds } from "../../ledger/channels/channel-refunds.ts";
import { withSignal } from "../../settle/evidence/with-signal.ts";
import { attempt, type ChannelVote, type ChannelVotes, withinTime } from "../watch/read-by-each.ts";
import { maxBlocksAtOnce, type RefundedEvent, readRefunded, sumOf } from "./read-refunded.ts";
import {
  isOverdue,
  type RefundMemory,
  type RefundsContext,
  type SentRefund,
  type ShownByEach,
} from "./refund-round.ts";

/** What the endpoints show of a refund's events. */
interface MovedByEach {
  /** The largest sum that any of them shows. */
  most: ReturnType<typeof sumOf>;
  /** Whether one may still show more. */
  isAwaited: boolean;
}

/** Time of an endpoint for the events of one refund, in all looks. */
const maxReadingMs = 1_200_000;
/** Counts of the time between two looks, at most: two moments' faults are not 20 minutes. */
const maxStepMs = 150_000;

/**
 * The events of a refund by each endpoint with a vote, down from the block of its vote. The nonce
 * that it voted for is that of the same block: so one that is honest lacks none. None is waited for
 * once one of them shows the amount. An overdue refund is looked for in all blocks that can have
 * come since its lock: the block that was noted then may have been too high.
 *
 * A node may return few blocks at once, be too slow, or have pruned the oldest. So each look goes
 * on from where the last one has ended, for 20 minutes. What it has shown by then counts.
 *
 * @throws what is no fault of a node; also where the process stops
 */
export async function readMoved(
  channels: RefundsContext,
  { shown: memory }: Pick<RefundMemory, "shown">,
  { refund, signed, votes }: SentRefund & { votes: ChannelVotes },
): Promise<MovedByEach> {
  const { context, settlement, place, stopping } = channels;
  const { clock, ledger } = context;
  const { network } = settlement;
  const { contract } = place;
  const { id, channelId, sinceNumber } = refund;
  const others = await findOtherRefunds(ledger, refund);
  const shown: ShownByEach = memory.get(id) ?? new Map();
  memory.set(id, shown);
  const enough = new AbortController();
  const sumOfOurs = (events: readonly RefundedEvent[]) =>
    sumOf(events.filter(({ hash }) => !others.has(hash)));
  const isEnough = (events: readonly RefundedEvent[]) =>
    (sumOfOurs(events)?.refunded ?? 0n) >= signed.amount;

  async function ask({ endpoint: number, block }: ChannelVote, signal: AbortSignal) {
    const endpoint = network.rpc.endpoints.find((each) => each.endpoint === number);
    if (endpoint === undefined) return { sum: undefined, isAwaited: false };
    const now = clock.now();
    const soFar = shown.get(endpoint) ?? {
      next: block.number,
      atOnce: maxBlocksAtOnce,
      events: [],
      at: now,
      readingMs: 0,
    };
    shown.set(endpoint, soFar);
    soFar.readingMs += Math.min(now - soFar.at, maxStepMs);
    soFar.at = now;
    const rpc = withSignal(endpoint, signal);
    const readDownTo = (first: number) =>
      attempt(signal, () => readRefunded(rpc, { contract, channelId, first, isEnough }, soFar));
    let { fault } = await readDownTo(sinceNumber + 1);
    if (fault === undefined && isOverdue(channels, refund)) {
      ({ fault } = await readDownTo(firstBlockOf(channels, refund, block.number)));
    }
    stopping.throwIfAborted();
    if (isEnough(soFar.events)) enough.abort();
    const isInTime = soFar.readingMs < maxReadingMs;
    return { sum: sumOfOurs(soFar.events), isAwaited: fault !== undefined && isInTime };
  }

  const answers = await withinTime(
    clock,
    (signal) => Promise.all(votes.readings.map((vote) => ask(vote, signal))),
    [stopping, enough.signal],
  );
  const [most] = answers
    .flatMap(({ sum }) => sum ?? [])
    .sort((a, b) => (a.refunded < b.refunded ? 1 : -1));
  const isOneAwaited = !enough.signal.aborted && answers.some(({ isAwaited }) => isAwaited);
  // Newest logs may come late: all are asked anew then.
  if (!isOneAwaited) memory.delete(id);
  return { most, isAwaited: isOneAwaited };
}

/**
 * The first block that can have come since a refund's lock. The block that was noted then is one
 * node's word, and so is that of a receipt.
 */
function firstBlockOf(
  { context, settlement: { network } }: RefundsContext,
  { createdAt }: SentRefund["refund"],
  last: number,
): number {
  const ageMs = Math.abs(context.ledger.now() - createdAt);
  const paced = plausibleBlocks(ageMs, network.blocks.blockTimeMs());
  // A false head makes the pace fast. None is faster than this.
  const blocks = Math.min(paced, plausibleBlocks(ageMs)) + network.finalAfter;
  return Math.max(0, Math.floor(last - blocks));
}
