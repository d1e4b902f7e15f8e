import { plausibleBlocks } from "@coinslot/chain";
import { findOtherRefunds } from "../../ledger/channels/channel-refunds.ts";
import { isAwaited, noteAnswer } from "../../settle/evidence/silences.ts";
import { withSignal } from "../../settle/evidence/with-signal.ts";
import { attempt, type ChannelVote, type ChannelVotes, withinTime } from "../watch/read-by-each.ts";
import type { BlockId } from "../watch/read-channels.ts";
import { type RefundedSoFar, readRefunded, sumOf } from "./read-refunded.ts";
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

/**
 * The events of a refund by each endpoint with a vote, up to the block of its vote. The nonce that
 * it voted for is that of the same block: so one that is honest lacks none. The block at the lock
 * may have been too high: an overdue refund is looked for in all blocks that can have come since.
 * None is waited for once one of them shows the amount.
 *
 * A node may return few blocks at once, and there may be many. So each look goes on from where the
 * last one has ended, by the same range. An endpoint that gets on is not silent. One that has
 * returned all is asked anew: its newest logs may come late.
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
  const { id, channelId, sinceNumber, createdAt } = refund;
  const subjects = ["refunds", `refund ${id}`];
  const ageMs = Math.abs(context.ledger.now() - createdAt);
  const paced = plausibleBlocks(ageMs, network.blocks.blockTimeMs());
  // A false head makes the pace fast. None is faster than this.
  const blocks = Math.min(paced, plausibleBlocks(ageMs)) + network.finalAfter;
  function fromOf({ number }: BlockId): number {
    // The block at the lock is one node's word, and so is that of a receipt.
    if (!isOverdue(channels, refund)) return sinceNumber + 1;
    return Math.max(0, Math.min(sinceNumber + 1, Math.floor(number - blocks)));
  }
  const others = await findOtherRefunds(context.ledger, refund);
  const shown: ShownByEach = memory.get(id) ?? new Map();
  memory.set(id, shown);
  const enough = new AbortController();

  async function ask({ endpoint: number, block }: ChannelVote, signal: AbortSignal) {
    const endpoint = network.rpc.endpoints.find((each) => each.endpoint === number);
    if (endpoint === undefined) return "silent";
    const begun: RefundedSoFar = { next: fromOf(block), to: block.number, events: [] };
    const soFar = shown.get(endpoint) ?? begun;
    shown.set(endpoint, soFar);
    const { next } = soFar;
    const rpc = withSignal(endpoint, signal);
    const read = await attempt(signal, () => readRefunded(rpc, { contract, channelId }, soFar));
    stopping.throwIfAborted();
    const sum = sumOf(soFar.events.filter(({ hash }) => !others.has(hash)));
    if (sum !== undefined && sum.refunded >= signed.amount) enough.abort();
    if (enough.signal.aborted) return sum;
    if (soFar.next > next) noteAnswer(endpoint, subjects);
    else if (read.fault !== undefined) {
      const silent = { network, endpoint, subjects, error: read.fault };
      return isAwaited(context, silent) ? "awaited" : "silent";
    }
    if (soFar.next <= soFar.to) return "awaited";
    shown.delete(endpoint);
    return sum;
  }

  const answers = await withinTime(
    context.clock,
    (signal) => Promise.all(votes.readings.map((vote) => ask(vote, signal))),
    AbortSignal.any([stopping, enough.signal]),
  );
  const [most] = answers
    .filter((answer) => answer !== undefined && typeof answer !== "string")
    .sort((a, b) => (a.refunded < b.refunded ? 1 : -1));
  return { most, isAwaited: !enough.signal.aborted && answers.includes("awaited") };
}
