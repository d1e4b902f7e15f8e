import type { RpcEndpointHandle } from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import { isAwaited, noteAnswer } from "../../settle/evidence/silences.ts";
import { withSignal } from "../../settle/evidence/with-signal.ts";
import { attempt, withinTime } from "../watch/read-by-each.ts";
import { readRefunded, sumOf } from "./read-refunded.ts";
import type { RefundsContext } from "./refund-round.ts";

/**
 * The largest sum of a channel's refunds in some blocks that any endpoint shows. It is for a nonce
 * that has passed: a refund was paid. `awaited`: none shows it, and one has not answered in
 * time.
 *
 * @throws what is no fault of a node; also where the process stops
 */
export async function readMoved(
  { context, settlement: { network }, place: { contract }, stopping }: RefundsContext,
  blocks: { channelId: Hex; from: number; to: number },
): Promise<ReturnType<typeof sumOf> | "awaited"> {
  const subjects = ["refunds"];
  async function ask(endpoint: RpcEndpointHandle, signal: AbortSignal) {
    const rpc = withSignal(endpoint, signal);
    const read = await attempt(signal, () => readRefunded(rpc, { ...blocks, contract }));
    stopping.throwIfAborted();
    if (read.fault !== undefined) {
      const silent = { network, endpoint, subjects, error: read.fault };
      return isAwaited(context, silent) ? "awaited" : undefined;
    }
    noteAnswer(endpoint, subjects);
    return sumOf(read.value.filter(({ blockNumber }) => blockNumber <= blocks.to));
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
