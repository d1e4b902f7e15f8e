import { plausibleBlocks, type RpcEndpointHandle } from "@coinslot/chain";
import { findOtherRefunds, type OpenRefund } from "../../ledger/channels/channel-refunds.ts";
import { isAwaited, noteAnswer } from "../../settle/evidence/silences.ts";
import { withSignal } from "../../settle/evidence/with-signal.ts";
import { attempt, withinTime } from "../watch/read-by-each.ts";
import { readRefunded, sumOf } from "./read-refunded.ts";
import type { RefundsContext } from "./refund-round.ts";

/**
 * The largest sum of a refund's events, up to a block, that any endpoint shows. It is for a nonce
 * that has passed: a refund was paid. `awaited`: none shows it, and one has not answered in time.
 *
 * @throws what is no fault of a node; also where the process stops
 */
export async function readMoved(
  { context, settlement: { network }, place: { contract }, stopping }: RefundsContext,
  refund: OpenRefund,
  to: number,
): Promise<ReturnType<typeof sumOf> | "awaited"> {
  const subjects = ["refunds"];
  const { channelId, sinceNumber, createdAt } = refund;
  // The block at its lock is one node's word, and so is that of a receipt.
  const ageMs = Math.abs(context.ledger.now() - createdAt);
  const paced = plausibleBlocks(ageMs, network.blocks.blockTimeMs());
  // A false head makes the pace fast. None is faster than this.
  const blocks = Math.min(paced, plausibleBlocks(ageMs)) + network.finalAfter;
  const from = Math.max(0, Math.min(sinceNumber + 1, Math.floor(to - blocks)));
  const others = await findOtherRefunds(context.ledger, refund);
  async function ask(endpoint: RpcEndpointHandle, signal: AbortSignal) {
    const rpc = withSignal(endpoint, signal);
    const read = await attempt(signal, () => readRefunded(rpc, { contract, channelId, from, to }));
    stopping.throwIfAborted();
    if (read.fault !== undefined) {
      const silent = { network, endpoint, subjects, error: read.fault };
      return isAwaited(context, silent) ? "awaited" : undefined;
    }
    noteAnswer(endpoint, subjects);
    return sumOf(
      read.value.filter(({ blockNumber, hash }) => blockNumber <= to && !others.has(hash)),
    );
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
