import { type PresentedDeposit, readChannelOffer } from "@coinslot/protocol";
import { answerInvalid, refuseVisit } from "../answer.ts";
import { askFacilitator } from "../facilitator/ask-facilitator.ts";
import { leavePlace } from "../load/load.ts";
import { payerLimited } from "../refusals.ts";
import { isGone } from "../response/when-gone.ts";
import { answerCorrection } from "./answer-correction.ts";
import { channelBusy, channelDepositPending } from "./channel-refusals.ts";
import type { ChannelOrder, ChannelSale } from "./channel-sale.ts";
import { sellByVoucher } from "./sell-by-voucher.ts";

/**
 * Puts the money of a deposit into its channel, then sells by the checked voucher beside it. A
 * handler that fails charges nothing, and the money stays in the buyer's channel.
 */
export function sellByDeposit(order: ChannelOrder, deposit: PresentedDeposit): Promise<void> {
  return sellByVoucher(order, (sale) => fund(sale, deposit));
}

/** @returns `undefined` where the request has been answered, or its buyer has left */
async function fund(
  sale: ChannelSale,
  deposit: PresentedDeposit,
): Promise<ChannelSale | undefined> {
  const { channels, requirements, load, place } = sale;
  const terms = readChannelOffer(requirements);
  if (channels.deposit === undefined || terms === undefined) {
    const reason = "invalid_batch_settlement_evm_payload_type";
    answerInvalid(sale, { ...sale, reason });
    return undefined;
  }
  const { domain, minDeposit = 0n } = terms;
  // It waits for blocks, and takes no place meanwhile.
  leavePlace(load, place);
  const outcome = await askFacilitator(sale, async () =>
    channels.deposit?.({ ...requestOf(sale), deposit, domain, minDeposit }),
  );
  switch (outcome?.state) {
    case undefined:
    case "gone":
      return undefined;
    case "deposited":
      return { ...sale, deposited: outcome };
    case "needless":
      return sale;
    case "corrected":
      answerCorrection(sale, outcome);
      return undefined;
    case "refused":
      answerInvalid(sale, { ...sale, reason: outcome.reason });
      return undefined;
    case "pending":
      refuseVisit(sale, channelDepositPending(outcome));
      return undefined;
    case "busy":
      refuseVisit(sale, channelBusy(outcome.retryAfterSeconds));
      return undefined;
    case "payer_limited":
      refuseVisit(sale, payerLimited(outcome.retryAfterSeconds));
      return undefined;
  }
}

function requestOf(sale: ChannelSale) {
  const { route, requirements, response, voucher, price, limitKey, owner } = sale;
  return {
    network: requirements.network,
    route: route.key,
    presented: voucher,
    price,
    fingerprint: owner.fingerprint,
    keyHash: owner.keyHash,
    isGone: () => isGone(response),
    limitKey,
    timeoutMs: requirements.maxTimeoutSeconds * 1_000,
  };
}
