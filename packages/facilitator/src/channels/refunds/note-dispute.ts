import type { OpenRefund } from "../../ledger/channels/channel-refunds.ts";
import type { SettlementContext } from "../../settle/context.ts";
import { backOff, firstRestMs } from "../back-off.ts";
import type { ChannelVotes } from "../watch/read-by-each.ts";
import type { RefundMemory } from "./refund-round.ts";

/**
 * Lets a refund rest whose end not all endpoints have shown. One that differs for ever costs
 * little, and is reported.
 */
export function noteDispute(
  { clock, logger }: Pick<SettlementContext, "clock" | "logger">,
  { disputes }: Pick<RefundMemory, "disputes">,
  {
    refund: { id, network, channelId },
    votes,
  }: {
    refund: Pick<OpenRefund, "id" | "network" | "channelId">;
    votes: Pick<ChannelVotes, "awaited"> | undefined;
  },
): void {
  const now = clock.now();
  if (votes !== undefined && votes.awaited > 0) {
    // A silent one is reported by itself, and asked again soon: its silence counts.
    disputes.set(id, { until: now + firstRestMs, attempts: disputes.get(id)?.attempts ?? 0 });
    return;
  }
  backOff(disputes, id, { now });
  // Once, one may be behind by a block.
  if (disputes.get(id)?.attempts === 1) return;
  logger.warn(
    { network, channel: channelId },
    "endpoints differ about the end of a channel's refund; the channel stays locked",
  );
}
