import { plausibleBlocks } from "@coinslot/chain";
import { findOtherRefunds } from "../../ledger/channels/channel-refunds.ts";
import { isAwaited, noteAnswer } from "../../settle/evidence/silences.ts";
import { withSignal } from "../../settle/evidence/with-signal.ts";
import { attempt, type ChannelVote, type ChannelVotes, withinTime } from "../watch/read-by-each.ts";
import { type RefundedSoFar, readRefunded, sumOf } from "./read-refunded.ts";
import {
  isOverdue,
  type RefundMemory,
  type RefundsContext,
  type SentRefund,
  type ShownByEach,
  type ShownByOne,
} from "./refund-round.ts";

/** What the endpoints show of a refund's events. */
interface MovedByEach {
  /** The largest sum that any of them shows. */
  most: ReturnType<typeof sumOf>;
  /** Whether one may still show more. */
  isAwaited: boolean;
}

/**
 * The events of a refund by each endpoint with a vote, up to the block of its vote. The nonce that
 * it voted for is that of the same block: so one that is honest lacks none. The block at the lock
 * may have been too high: an overdue refund is looked for in all blocks that can have come since.
 * None is waited for once one of them shows the amount.
 *
 * A node may return few blocks at once, and there may be many. So each look goes on from where the
 * last one has ended, by the same range. An endpoint that gets on is not silent.
 *
 * @throws what is no fault of a node; also where the process stops
 */
export async function readMoved(
  channels: RefundsContext,
  { shown: memory }: Pick<RefundMemory, "shown">,
  { refund, signed, votes }: SentRefund & { votes: ChannelVotes },
): Promise<MovedByEach> {
  const { context, settlement, place, stopping } = channels;
  const { network } = settlement;
  const { contract } = place;
  const { id, channelId, sinceNumber } = refund;
  const subjects = ["refunds", `refund ${id}`];
  const others = await findOtherRefunds(context.ledger, refund);
  const shown: ShownByEach = memory.get(id) ?? new Map();
  memory.set(id, shown);
  const enough = new AbortController();

  async function ask(vote: ChannelVote, signal: AbortSignal) {
    const endpoint = network.rpc.endpoints.find((each) => each.endpoint === vote.endpoint);
    if (endpoint === undefined) return "silent";
    const last = vote.block.number;
    const known = shown.get(endpoint) ?? { newer: blocksOf(sinceNumber + 1, last) };
    shown.set(endpoint, known);
    const { newer } = known;
    const before = readSoFar(known);
    const isNewerRead = newer.next > newer.to;
    const rpc = withSignal(endpoint, signal);
    const read = (part: RefundedSoFar) =>
      attempt(signal, () => readRefunded(rpc, { contract, channelId }, part));
    const sum = () => {
      const events = [...(known.older?.events ?? []), ...newer.events];
      return sumOf(events.filter(({ hash }) => !others.has(hash)));
    };
    const isShort = () => (sum()?.refunded ?? 0n) < signed.amount;
    let { fault } = await read(newer);
    if (fault === undefined && isShort() && isOverdue(channels, refund)) {
      known.older ??= blocksOf(firstBlockOf(channels, refund, last), Math.min(sinceNumber, last));
      fault = (await read(known.older)).fault;
      // It has pruned old logs, and has shown all that is new.
      const isDone = isNewerRead && newer.to > sinceNumber && readSoFar(known) === before;
      if (isDone) fault = undefined;
    }
    stopping.throwIfAborted();
    if (!isShort()) enough.abort();
    if (enough.signal.aborted) return sum();
    if (readSoFar(known) > before) noteAnswer(endpoint, subjects);
    else if (fault !== undefined) {
      const silent = { network, endpoint, subjects, error: fault };
      return isAwaited(context, silent) ? "awaited" : "silent";
    }
    return fault === undefined ? sum() : "awaited";
  }

  const answers = await withinTime(
    context.clock,
    (signal) => Promise.all(votes.readings.map((vote) => ask(vote, signal))),
    [stopping, enough.signal],
  );
  const [most] = answers
    .filter((answer) => answer !== undefined && typeof answer !== "string")
    .sort((a, b) => (a.refunded < b.refunded ? 1 : -1));
  const isOneAwaited = !enough.signal.aborted && answers.includes("awaited");
  // Newest logs may come late: all are asked anew then.
  if (!isOneAwaited) memory.delete(id);
  return { most, isAwaited: isOneAwaited };
}

function blocksOf(from: number, to: number): RefundedSoFar {
  return { next: from, to, events: [] };
}

/** Blocks that an endpoint has shown. */
function readSoFar({ newer, older }: ShownByOne): number {
  return newer.next + (older?.next ?? 0);
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
