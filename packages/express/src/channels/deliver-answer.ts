import type { ChannelCharge, SettleResponse } from "@coinslot/protocol";
import { leavePlace } from "../load/load.ts";
import { decodeAnswer, encodeAnswer, type HeldAnswer } from "../response/held-answer.ts";
import { exposePaymentHeaders, makePrivate } from "../response/response-headers.ts";
import { whenStreamed } from "../response/stream-response.ts";
import type { ChannelSale } from "./channel-sale.ts";

/** A charge whose answer may go out. */
export type Paid = Pick<ChannelCharge, "amount" | "channelState" | "deliver" | "giveUp">;

/**
 * Sends an answer with its receipt, and ends its charge: delivered, or given up where the buyer has
 * left. The channel's next request waits until then.
 */
export async function deliverAnswer(
  sale: ChannelSale,
  paid: Paid,
  { answer, send }: { answer: HeldAnswer; send: (decorate: () => void) => void },
): Promise<void> {
  const { response, settings, load, place, answers, owner } = sale;
  leavePlace(load, place);
  const sent = whenStreamed(response);
  try {
    send(() => decorate(sale, paid));
  } catch (error) {
    // Not answered as an error of ours: it has been paid for, and the same request may try again.
    settings.onError(error);
    response.destroy();
  }
  if ((await sent) !== "disconnected") {
    answers.drop(owner.id);
    return paid.deliver();
  }
  keepInMemory(sale, answer);
  await paid.giveUp().catch(settings.onError);
}

/** Adds the receipt, and keeps the answer out of shared caches. */
export function decorate(sale: ChannelSale, paid: Paid): void {
  const { response, wire } = sale;
  const { amount, channelState } = paid;
  wire.writeReceipt(response, settlementOf(sale), { chargedAmount: amount, channelState });
  makePrivate(response);
  exposePaymentHeaders(response);
}

/** A charge as a settlement: the transaction and the amount are those of its deposit, if any. */
export function settlementOf({ requirements, voucher, deposited }: ChannelSale): SettleResponse {
  const { payer } = voucher.channelConfig;
  const charge = { success: true, payer, network: requirements.network, transaction: "" };
  if (deposited === undefined) return charge;
  const { transaction, amount } = deposited;
  return { ...charge, transaction, amount: `${amount}` };
}

/** Keeps the answer in this process: it is paid for, and has not arrived. */
export function keepInMemory({ answers, settings, owner }: ChannelSale, answer: HeldAnswer): void {
  if (answer.body.length > settings.maxKeptAnswerBytes) return;
  answers.keep(owner, answer, settings.now());
}

/** The kept answer of a charge: under the buyer's key, or in the memory of this process. */
export function findAnswer(
  { answers, settings, owner, seal }: ChannelSale,
  sealed: Uint8Array | undefined,
): HeldAnswer | undefined {
  const opened = sealed && seal?.open(sealed);
  return opened === undefined ? answers.find(owner, settings.now()) : decodeAnswer(opened);
}

/** The answer under the buyer's key, if there is one and it is not too large. */
export function sealAnswer(
  { seal, settings }: ChannelSale,
  answer: HeldAnswer,
): Uint8Array | undefined {
  if (seal === undefined || answer.body.length > settings.maxKeptAnswerBytes) return undefined;
  return seal.seal(encodeAnswer(answer));
}
