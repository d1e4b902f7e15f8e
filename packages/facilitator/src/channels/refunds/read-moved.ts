import type { Hex } from "@coinslot/protocol";
import { isAwaited, noteAnswer } from "../../settle/evidence/silences.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { readRefunded, sumOf } from "./read-refunded.ts";

/**
 * The largest sum of a channel's refunds in some blocks that any endpoint shows. It is for a nonce
 * that has passed: a refund was paid. `awaited`: none shows it, and one has not answered.
 *
 * @throws what is no fault of a node
 */
export async function readMoved(
  { context, settlement: { network }, place: { contract } }: ChannelsContext,
  blocks: { channelId: Hex; from: number; to: number },
): Promise<ReturnType<typeof sumOf> | "awaited"> {
  const subjects = ["refunds"];
  const sums = await Promise.all(
    network.rpc.endpoints.map(async (endpoint) => {
      try {
        const events = await readRefunded(endpoint, { ...blocks, contract });
        noteAnswer(endpoint, subjects);
        return sumOf(events.filter(({ blockNumber }) => blockNumber <= blocks.to));
      } catch (error) {
        const silent = { network, endpoint, subjects, error };
        return isAwaited(context, silent) ? "awaited" : undefined;
      }
    }),
  );
  const shown = sums.filter((sum) => typeof sum === "object");
  shown.sort((a, b) => (a.refunded < b.refunded ? 1 : -1));
  return shown[0] ?? (sums.includes("awaited") ? "awaited" : undefined);
}
