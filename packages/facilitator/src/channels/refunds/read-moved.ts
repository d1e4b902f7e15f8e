import { plausibleBlocks, type RpcEndpointHandle } from "@coinslot/chain";
import { findOtherRefunds, type OpenRefund } from "../../ledger/channels/channel-refunds.ts";
import { isAwaited, noteAnswer } from "../../settle/evidence/silences.ts";
import { withSignal } from "../../settle/evidence/with-signal.ts";
import { attempt, withinTime } from "../watch/read-by-each.ts";
import { type RefundedSoFar, readOn, sumOf } from "./read-refunded.ts";
import type { RefundMemory, RefundsContext } from "./refund-round.ts";

/**
 * The largest sum of a refund's events, up to a block, that any endpoint shows. It is for a nonce
 * that has passed: a refund was paid. `awaited`: none shows it, and one has not answered in time.
 *
 * A node may return few blocks at once, and there may be many. So each look goes on from where the
 * last one has ended, by the same range. An endpoint that gets on is not silent.
 *
 * @throws what is no fault of a node; also where the process stops
 */
export async function readMoved(
  { context, settlement: { network }, place: { contract }, stopping }: RefundsContext,
  { shown: known }: Pick<RefundMemory, "shown">,
  { refund, nonce, to: newest }: { refund: OpenRefund; nonce: bigint; to: number },
): Promise<ReturnType<typeof sumOf> | "awaited"> {
  const subjects = ["refunds"];
  const { channelId, sinceNumber, createdAt } = refund;
  // The block at its lock is one node's word, and so is that of a receipt.
  const ageMs = Math.abs(context.ledger.now() - createdAt);
  const paced = plausibleBlocks(ageMs, network.blocks.blockTimeMs());
  // A false head makes the pace fast. None is faster than this.
  const blocks = Math.min(paced, plausibleBlocks(ageMs)) + network.finalAfter;
  const from = Math.max(0, Math.min(sinceNumber + 1, Math.floor(newest - blocks)));
  const others = await findOtherRefunds(context.ledger, refund);
  const ofRefund = known.get(refund.id);
  const byEndpoint: NonNullable<typeof ofRefund>["byEndpoint"] =
    ofRefund?.nonce === nonce ? ofRefund.byEndpoint : new Map();
  known.set(refund.id, { nonce, byEndpoint });
  async function ask(endpoint: RpcEndpointHandle, signal: AbortSignal) {
    const soFar: RefundedSoFar = byEndpoint.get(endpoint) ?? { next: from, to: newest, events: [] };
    byEndpoint.set(endpoint, soFar);
    const { next, to, events } = soFar;
    const rpc = withSignal(endpoint, signal);
    const read = await attempt(signal, () => readOn(rpc, { contract, channelId }, soFar));
    stopping.throwIfAborted();
    if (soFar.next > next) noteAnswer(endpoint, subjects);
    else if (read.fault !== undefined) {
      const silent = { network, endpoint, subjects, error: read.fault };
      return isAwaited(context, silent) ? "awaited" : undefined;
    }
    if (soFar.next <= to) return "awaited";
    return sumOf(events.filter(({ blockNumber, hash }) => blockNumber <= to && !others.has(hash)));
  }
  const sums = await withinTime(
    context.clock,
    (signal) => Promise.all(network.rpc.endpoints.map((endpoint) => ask(endpoint, signal))),
    stopping,
  );
  const shown = sums.filter((sum) => typeof sum === "object");
  shown.sort((a, b) => (a.refunded < b.refunded ? 1 : -1));
  return shown[0] ?? (sums.includes("awaited") ? "awaited" : undefined);
}
