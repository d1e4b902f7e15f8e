import { RpcError } from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import * as z from "zod";
import type { OpenRefund } from "../../ledger/channels/channel-refunds.ts";
import { endRefund } from "../../ledger/channels/move-refund.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { type ChannelVotes, readByEach } from "../watch/read-by-each.ts";
import { concludeAgreed, followRefund, type PassedRefund } from "./follow-refund.ts";
import { planRefund } from "./plan-refund.ts";
import {
  failRefund,
  isOverdue,
  openCase,
  type RefundCase,
  type RefundMemory,
  type RefundsContext,
} from "./refund-round.ts";
import { sendByKey, tryRefund } from "./send-refund.ts";

/** Endpoints are asked anew after this: a withdrawal may have ended since. */
const maxVoteAgeMs = 60_000;
const notSent = "invalid_batch_settlement_evm_refund_transaction_failed";

/**
 * Brings refunds as far as the chain allows: signs them, sends them again, notes their events, ends
 * them. Another process may do the same at once, and may have died at any step before. A fault of
 * one refund holds up no other. Each endpoint is asked about all of them at once.
 *
 * `stopping` ends the look before its next refund.
 *
 * @throws what is no fault of a node where endpoints are asked; what was stored stays
 */
export async function advanceChannelRefunds(
  channels: RefundsContext,
  memory: RefundMemory,
  open: readonly OpenRefund[],
): Promise<void> {
  const { clock, logger } = channels.context;
  const isStopped = () => channels.stopping.aborted;
  const { finalAfter: depth } = channels.settlement.network;
  async function attempt({ network, channelId }: OpenRefund, advance: () => Promise<void>) {
    if (isStopped()) return;
    try {
      await advance();
    } catch (err) {
      if (isStopped()) return;
      logger.warn({ err, network, channel: channelId }, "a channel's refund waits; retrying");
    }
  }
  const locked = open.filter(({ state }) => state === "locked");
  const passed: PassedRefund[] = [];
  for (const refund of open) {
    if (refund.state === "locked") continue;
    await attempt(refund, async () => {
      const found = await followRefund(channels, memory, refund);
      if (found !== undefined) passed.push(found);
    });
  }
  let votedAt = clock.now();
  const [votesOfAll, votesOfPassed] = await Promise.all([
    readByEach(channels, { ids: idsOf(locked) }),
    readByEach(channels, { ids: passed.map(({ refund }) => refund.channelId), depth }),
  ]);
  for (const each of passed) {
    const votes = votesOfPassed.get(each.refund.channelId);
    await attempt(each.refund, () => concludeAgreed(channels, memory, { ...each, votes }));
  }
  let votesOfLocked = votesOfAll;
  for (const [index, refund] of locked.entries()) {
    await attempt(refund, async () => {
      const now = clock.now();
      if (now - votedAt >= maxVoteAgeMs) {
        // All that are left: a slow endpoint would take its time for each one alone.
        votesOfLocked = await readByEach(channels, { ids: idsOf(locked.slice(index)) });
        votedAt = now;
      }
      await signRefund(channels, refund, votesOfLocked.get(refund.channelId));
    });
  }
}

function idsOf(refunds: readonly OpenRefund[]): Hex[] {
  return refunds.map(({ channelId }) => channelId);
}

/** `locked`: nothing that is good is signed. So it may end, whatever a node returns. */
async function signRefund(
  channels: RefundsContext,
  refund: OpenRefund,
  votes: ChannelVotes | undefined,
): Promise<void> {
  try {
    const found = await openCase(channels, refund);
    if (found !== undefined) return await signCase(channels, found, votes);
  } catch (error) {
    const isFault = error instanceof RpcError || error instanceof z.ZodError;
    if (!isFault || !isOverdue(channels, refund)) throw error;
  }
  // A node may lack what it is decided by for good, or lie about it.
  if (isOverdue(channels, refund)) await failRefund(channels, refund, notSent);
}

async function signCase(
  channels: RefundsContext,
  found: RefundCase,
  votes: ChannelVotes | undefined,
): Promise<void> {
  const { ledger } = channels.context;
  const { refund } = found;
  const decided = await planRefund(channels, found, votes);
  switch (decided.kind) {
    case "waits":
      if (isOverdue(channels, refund)) await failRefund(channels, refund, notSent);
      return;
    case "refused":
      return failRefund(channels, refund, decided.reason);
    case "ended":
      await endRefund(ledger, refund, { state: "done", event: decided.event });
      return;
    case "plan": {
      const error = await tryRefund(channels, found, decided);
      if (error !== undefined) return refuse(channels, refund, error);
      const isStored = await sendByKey(channels, found, decided);
      if (!isStored && isOverdue(channels, refund)) await failRefund(channels, refund, notSent);
    }
  }
}

async function refuse(channels: ChannelsContext, refund: OpenRefund, error: string): Promise<void> {
  const { context, place } = channels;
  const { network } = place;
  context.logger.error(
    { network, channel: refund.channelId, error },
    "the escrow refuses a channel's refund; nothing was signed",
  );
  await failRefund(channels, refund, "invalid_batch_settlement_evm_refund_simulation_failed");
}
