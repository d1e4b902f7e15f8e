import { type ChannelCorrection, correctChannelOffer } from "@coinslot/protocol";
import { answerPaymentRequired } from "../answer.ts";
import type { ChannelOrder } from "./channel-sale.ts";

/** Of the public specification: the released client signs again by the state in the offer. */
const outOfStep = "invalid_batch_settlement_evm_cumulative_amount_mismatch";

/** Answers 402 with the state of the buyer's channel, and the voucher that proves it. */
export function answerCorrection(order: ChannelOrder, correction: ChannelCorrection): void {
  const { offer, requirements } = order;
  const { channelState, voucherState } = correction;
  const corrected = correctChannelOffer(requirements, {
    channelState,
    ...(voucherState === undefined ? {} : { voucherState }),
  });
  answerPaymentRequired(order, {
    offer: offer.map((way) =>
      way.requirements === requirements ? { ...way, requirements: corrected } : way,
    ),
    error: outOfStep,
    charged: false,
  });
}
