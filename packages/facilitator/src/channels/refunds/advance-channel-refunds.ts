import { RpcError } from "@coinslot/chain";
import * as z from "zod";
import type { OpenRefund } from "../../ledger/channels/channel-refunds.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { readByEach } from "../watch/read-by-each.ts";
import { conclude, followRefund, isFinal, noteShown } from "./follow-refund.ts";
import { planRefund, type RefundVotes, readRefundVotes } from "./plan-refund.ts";
import {
  failRefund,
  isOverdue,
  type RefundMemory,
  type RefundsContext,
  readRefundOfChannel,
  type SentRefund,
} from "./refund-round.ts";
import { sendByKey, tryRefund } from "./send-refund.ts";

/** Endpoints are asked anew after this: a withdrawal may have ended since. */
const maxVoteAgeMs = 60_000;
const notSent = "invalid_batch_settlement_evm_refund_transaction_failed";
const noBalance = "invalid_batch_settlement_evm_refund_no_balance";

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
  const passed: SentRefund[] = [];
  for (const refund of open) {
    if (refund.state === "locked") continue;
    await attempt(refund, async () => {
      const sent = await followRefund(channels, memory, refund);
      if (sent !== undefined) passed.push(sent);
    });
  }
  // At once, here and below: a slow endpoint would take its time for each one alone.
  await Promise.all(
    passed.map((sent) => attempt(sent.refund, () => noteShown(channels, memory, sent))),
  );
  const final: SentRefund[] = [];
  for (const sent of passed) {
    await attempt(sent.refund, async () => {
      if (await isFinal(channels, memory, sent)) final.push(sent);
    });
  }
  let votedAt = clock.now();
  const ids = final.map(({ refund }) => refund.channelId);
  const [votesOfAll, votesOfFinal] = await Promise.all([
    readRefundVotes(channels, locked),
    readByEach(channels, { ids, depth }),
  ]);
  await Promise.all(
    final.map((sent) => {
      const votes = votesOfFinal.get(sent.refund.channelId);
      return attempt(sent.refund, () => conclude(channels, memory, { ...sent, votes }));
    }),
  );
  let votesOfLocked = votesOfAll;
  for (const [index, refund] of locked.entries()) {
    await attempt(refund, async () => {
      const now = clock.now();
      if (now - votedAt >= maxVoteAgeMs) {
        votesOfLocked = await readRefundVotes(channels, locked.slice(index));
        votedAt = now;
      }
      await signRefund(channels, refund, votesOfLocked.get(refund.channelId));
    });
  }
}

/** `locked`: nothing that is good is signed. So it may end, whatever a node returns. */
async function signRefund(
  channels: RefundsContext,
  refund: OpenRefund,
  votes: RefundVotes | undefined,
): Promise<void> {
  try {
    if (await isSettled(channels, refund, votes)) return;
  } catch (error) {
    const isFault = error instanceof RpcError || error instanceof z.ZodError;
    if (!isFault || !isOverdue(channels, refund)) throw error;
  }
  // A node may lack what it is decided by for good, or lie about it.
  if (isOverdue(channels, refund)) await failRefund(channels, refund, notSent);
}

/** Returns whether it was sent, or has ended. */
async function isSettled(
  channels: RefundsContext,
  refund: OpenRefund,
  votes: RefundVotes | undefined,
): Promise<boolean> {
  const known = await readRefundOfChannel(channels, refund);
  if (known === undefined) return false;
  const plan = planRefund(channels, known, votes);
  switch (plan.kind) {
    case "waits":
      return false;
    case "empty":
      await failRefund(channels, refund, noBalance);
      return true;
    case "plan": {
      const found = { ...known, atHead: plan.atHead };
      const error = await tryRefund(channels, found, plan);
      if (error === undefined) return sendByKey(channels, found, plan);
      await refuse(channels, refund, error);
      return true;
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
