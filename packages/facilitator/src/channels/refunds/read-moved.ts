import { plausibleBlocks, type RpcEndpointHandle } from "@coinslot/chain";
import { findOtherRefunds, type OpenRefund } from "../../ledger/channels/channel-refunds.ts";
import { isAwaited, noteAnswer } from "../../settle/evidence/silences.ts";
import { withSignal } from "../../settle/evidence/with-signal.ts";
import { attempt, type ChannelVotes, withinTime } from "../watch/read-by-each.ts";
import { type RefundedSoFar, readOn, sumOf } from "./read-refunded.ts";
import type { RefundsContext, ShownByEach } from "./refund-round.ts";

/** What the endpoints show of a refund's events. */
interface MovedByEach {
  /** The largest sum that any of them shows. */
  most: ReturnType<typeof sumOf>;
  /** Whether one that has a say has not answered in time. */
  isAwaited: boolean;
  /** Whether all that have a say show the same sum. */
  isAgreed: boolean;
}

/**
 * The events of a refund by each endpoint, up to the block of its vote. The nonce that it voted for
 * is that of the same block: so one that is honest lacks none.
 *
 * A node may return few blocks at once, and there may be many. With `shown`, each look goes on from
 * where the last one has ended, by the same range. An endpoint that gets on is not silent then.
 *
 * @param options.from the first block; without it, all that can have come since the lock are read
 * @param options.to the last block of an endpoint without a vote
 * @throws what is no fault of a node; also where the process stops
 */
export async function readMoved(
  { context, settlement: { network }, place: { contract }, stopping }: RefundsContext,
  refund: OpenRefund,
  {
    votes,
    from,
    to,
    shown,
  }: { votes: ChannelVotes | undefined; from?: number; to: number; shown?: ShownByEach },
): Promise<MovedByEach> {
  const subjects = ["refunds"];
  const { channelId, sinceNumber, createdAt } = refund;
  // The block at its lock is one node's word, and so is that of a receipt.
  const ageMs = Math.abs(context.ledger.now() - createdAt);
  const paced = plausibleBlocks(ageMs, network.blocks.blockTimeMs());
  // A false head makes the pace fast. None is faster than this.
  const blocks = Math.min(paced, plausibleBlocks(ageMs)) + network.finalAfter;
  const others = await findOtherRefunds(context.ledger, refund);
  async function ask(endpoint: RpcEndpointHandle, signal: AbortSignal) {
    const rpc = withSignal(endpoint, signal);
    const vote = votes?.readings.find((each) => each.endpoint === endpoint.endpoint);
    const last = vote?.block.number ?? to;
    const first = from ?? Math.max(0, Math.min(sinceNumber + 1, Math.floor(last - blocks)));
    const soFar: RefundedSoFar = shown?.get(endpoint) ?? { next: first, to: last, events: [] };
    shown?.set(endpoint, soFar);
    const { next, events } = soFar;
    const read = await attempt(signal, () => readOn(rpc, { contract, channelId }, soFar));
    stopping.throwIfAborted();
    const hasGotOn = shown !== undefined && soFar.next > next;
    if (read.fault !== undefined && !hasGotOn) {
      const silent = { network, endpoint, subjects, error: read.fault };
      return isAwaited(context, silent) ? "awaited" : "silent";
    }
    if (soFar.next > next) noteAnswer(endpoint, subjects);
    if (soFar.next <= soFar.to) return "awaited";
    return sumOf(
      events.filter(({ blockNumber, hash }) => blockNumber <= soFar.to && !others.has(hash)),
    );
  }
  const answers = await withinTime(
    context.clock,
    (signal) => Promise.all(network.rpc.endpoints.map((endpoint) => ask(endpoint, signal))),
    stopping,
  );
  const sums = answers.filter((answer) => typeof answer !== "string");
  const [most] = sums
    .filter((sum) => sum !== undefined)
    .sort((a, b) => (a.refunded < b.refunded ? 1 : -1));
  const isOneAwaited = answers.includes("awaited");
  const isSame = sums.length > 0 && sums.every((sum) => sum?.refunded === most?.refunded);
  return { most, isAwaited: isOneAwaited, isAgreed: isSame && !isOneAwaited };
}
