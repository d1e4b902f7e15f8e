import type { Hex } from "@coinslot/protocol";
import type { ChannelKey } from "../../ledger/channels/channel.ts";
import {
  type ChannelRefund,
  findLastRefund,
  readRefund,
} from "../../ledger/channels/channel-refunds.ts";
import { readChannelConfig } from "../../ledger/channels/open-channel.ts";
import { OperationRefusedError } from "../../operators/operation-refused-error.ts";
import { baseOf } from "../../schemes/batch-settlement/admit-voucher.ts";
import { lockSeen, type Refunding } from "../refunds/serve-refund.ts";
import type { ChannelNetwork, SalesContext } from "../sales/sales-context.ts";

/** A refund that an operator asks for. */
export interface OperatorsRefund {
  channelId: Hex;
  /** In the token's smallest unit; `undefined`: all that was not charged. */
  amount: bigint | undefined;
  /** The same for a repeated question. */
  idempotencyKey: string;
}

/** Looks at a channel whose request runs in another process. */
const maxAttempts = 5;
const pauseMs = 300;

/**
 * Begins a refund for the operator, without a voucher of the buyer's: it pays the channel's payer,
 * and no limit holds. It is refused while another refund of the channel is under way: joined to
 * that one, the same question would begin a refund of its own later.
 *
 * @returns the refund, on the disk and on its way
 * @throws OperationRefusedError in words for the operator
 */
export async function refundByOperator(
  context: SalesContext,
  network: ChannelNetwork,
  asked: OperatorsRefund,
): Promise<ChannelRefund> {
  const { ledger } = context;
  const { refunds } = network;
  const { channelId } = asked;
  const key: ChannelKey = { network: network.network, contract: network.contract, channelId };
  const id = `operator:${channelId}:${asked.idempotencyKey}`;
  const before = await readRefund(ledger, id);
  if (before !== undefined) return before;
  if (refunds === undefined) throw refused("no_channels", "This seller has no channels there");
  const release = await context.lanes.enter(channelId);
  if (release === undefined) throw busy();
  try {
    for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
      if (attempt > 0) await context.pause(pauseMs);
      const begun = await begin(context, { ...network, refunds }, { ...asked, key, id });
      if (begun !== undefined) return begun;
    }
    throw busy();
  } finally {
    release();
  }
}

/** @returns `undefined` where another process has the channel */
async function begin(
  context: SalesContext,
  network: Refunding,
  { key, id, channelId, amount }: OperatorsRefund & { key: ChannelKey; id: string },
): Promise<ChannelRefund | undefined> {
  const { ledger } = context;
  const config = await readChannelConfig(ledger, key);
  if (config === undefined) {
    throw refused("unknown_channel", "The ledger has no such channel on this network");
  }
  const seen = await network.observer.observe(channelId, config);
  if (seen.kind !== "observed") {
    throw refused("chain_unreadable", "The chain is not followed at the moment: try again");
  }
  const { channel, state } = seen;
  if (channel.isRefunding) {
    const running = await findLastRefund(ledger, key);
    if (running === undefined || running.endedAt !== undefined) return undefined;
    // Another process has begun this very one.
    if (running.id === id) return running;
    throw refused(
      "refund_running",
      `Another refund of this channel is under way: ${running.id}. Try again once it has ended`,
    );
  }
  if (state.balance <= baseOf(channel.charged, state.totalClaimed)) {
    throw refused("nothing_to_refund", "All that the escrow holds of this channel was charged");
  }
  if (!network.refunds.signs(config.receiverAuthorizer)) {
    throw refused("no_key", `The key of the authorizer ${config.receiverAuthorizer} is not here`);
  }
  const signer = config.payerAuthorizer;
  const locked = await lockSeen(context, network, { key, signer, seen, asked: amount, id });
  return "id" in locked ? readRefund(ledger, locked.id) : undefined;
}

function refused(code: string, message: string): OperationRefusedError {
  return new OperationRefusedError(code, message);
}

function busy(): OperationRefusedError {
  return refused("busy", "A request of this channel runs, or its answer is on its way: try again");
}
