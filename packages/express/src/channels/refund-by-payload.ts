import type { ChannelRefundOutcome } from "@coinslot/protocol";
import { answerInvalid, answerJson, refuseVisit } from "../answer.ts";
import { askFacilitator } from "../facilitator/ask-facilitator.ts";
import { leavePlace } from "../load/load.ts";
import { isGone } from "../response/when-gone.ts";
import { answerCorrection } from "./answer-correction.ts";
import * as refusals from "./channel-refusals.ts";
import type { ChannelOrder } from "./channel-sale.ts";

/**
 * Gives back what was not charged on a channel, by its buyer's payload. The handler does not run.
 * The voucher was checked.
 *
 * @param asked in the token's smallest unit; `undefined`: all that was not charged
 */
export async function refundByPayload(
  order: ChannelOrder,
  asked: bigint | undefined,
): Promise<void> {
  const { channels, response, load, place, requirements, voucher, limitKey } = order;
  // It waits for blocks, and takes no place meanwhile.
  leavePlace(load, place);
  const outcome = await askFacilitator(order, () =>
    channels.refund({
      network: requirements.network,
      presented: voucher,
      amount: asked,
      isGone: () => isGone(response),
      limitKey,
    }),
  );
  switch (outcome?.state) {
    case undefined:
    case "gone":
      return;
    case "refunded":
      return answerRefunded(order, outcome);
    case "corrected":
      return answerCorrection(order, outcome);
    case "refused":
      return answerInvalid(order, { ...order, reason: outcome.reason });
    case "pending":
      return refuseVisit(order, refusals.channelRefundPending(outcome.retryAfterSeconds));
    case "busy":
      return refuseVisit(order, refusals.channelBusy(outcome.retryAfterSeconds));
    case "limited":
      return refuseVisit(order, refusals.channelRefundsLimited(outcome.retryAfterSeconds));
  }
}

/** The answer of the public specification. */
function answerRefunded(
  { response, wire, requirements: { network }, voucher }: ChannelOrder,
  { transaction, amount, channelState }: Extract<ChannelRefundOutcome, { state: "refunded" }>,
): void {
  const { payer } = voucher.channelConfig;
  const settlement = { success: true, payer, network, transaction, amount: `${amount}` };
  wire.writeReceipt(response, settlement, { channelState });
  const { channelId } = channelState;
  answerJson(response, { status: 200, body: { message: "Refund acknowledged", channelId } });
}
