import type { ChannelRepeat, ChannelRun } from "@coinslot/protocol";
import { refuseVisit } from "../answer.ts";
import { internalError } from "../refusals.ts";
import { type HeldAnswer, sendAnswer } from "../response/held-answer.ts";
import type { HeldResponse } from "../response/hold-response.ts";
import { holdRun } from "../response/run-held.ts";
import { answerCorrection } from "./answer-correction.ts";
import { channelChargePending } from "./channel-refusals.ts";
import type { ChannelSale } from "./channel-sale.ts";
import { type ChargedAmount, createChargedAmount } from "./charged-amount.ts";
import {
  deliverAnswer,
  findAnswer,
  keepInMemory,
  type Paid,
  sealAnswer,
} from "./deliver-answer.ts";
import { paymentOf } from "./request-payment.ts";
import { takeOverride } from "./settlement-overrides.ts";
import { streamAnswer } from "./stream-answer.ts";

/** The handler works, the channel is charged, the answer goes out. */
export async function sellOnAnswer(sale: ChannelSale, run: ChannelRun): Promise<void> {
  let isEnded = false;
  /** @param isFree the handler has worked for nothing: it counts against the signer */
  const drop = async (isFree: boolean): Promise<void> => {
    isEnded = true;
    await run.drop({ isFree }).catch(sale.settings.onError);
  };
  const work = prepareWork(sale);
  try {
    const ran = await holdRun(sale, { isPaid: false, release: () => drop(true) });
    if (ran === undefined) return;
    const { held } = ran;
    work.end();
    const { answer, amount } = priceAnswer(sale, work, ran.answer);
    if (answer.status >= 400 || work.isWaived()) {
      await drop(!work.isWaived());
      return held.release(answer);
    }
    if (amount === undefined) {
      await drop(false);
      return held.replace(() => refuseVisit(sale, internalError));
    }
    isEnded = true;
    await chargeAnswer(sale, run, { held, answer, amount });
  } finally {
    if (!isEnded) await drop(sale.progress.hasRun);
  }
}

/** Charges, and sends the held answer; discards it where nothing was charged. */
async function chargeAnswer(
  sale: ChannelSale,
  run: ChannelRun,
  { held, answer, amount }: { held: HeldResponse; answer: HeldAnswer; amount: bigint },
): Promise<void> {
  const charge = await chargeFor(sale, run, { amount, sealedAnswer: sealAnswer(sale, answer) });
  if (charge === undefined) {
    keepInMemory(sale, answer);
    return held.replace(() => refuseVisit(sale, channelChargePending));
  }
  if (charge.state === "corrected") return held.replace(() => answerCorrection(sale, charge));
  await deliverAnswer(sale, charge, {
    answer,
    send: (decorate) => held.release(answer, decorate),
  });
}

/** The maximum is charged, and the handler answers freely. The rest of its charge is given back. */
export async function sellUpfront(sale: ChannelSale, run: ChannelRun): Promise<void> {
  const charge = await chargeFor(sale, run, { amount: sale.price });
  if (charge === undefined) return refuseVisit(sale, channelChargePending);
  if (charge.state === "corrected") return answerCorrection(sale, charge);
  const { outcome, charged, hasBegun } = await streamAnswer(sale, charge);
  const { onError } = sale.settings;
  const { amount } = charge;
  // Failed before its answer began, by its status or without one. A buyer that leaves pays: what
  // its handler does is done, and the same request may have its answer.
  if (outcome === "failed" || (outcome === "broken" && !hasBegun)) {
    const isTakenBack = await charge.lower(0n, { isFree: true }).catch(onError);
    // A claim has it: the charge stays, and the same request may have its answer.
    if (isTakenBack !== true) await charge.giveUp().catch(onError);
    return;
  }
  if (charged !== undefined && charged < amount) {
    const isFree = charged === 0n && outcome !== "answered";
    const isLowered = await charge.lower(charged, { isFree }).catch(onError);
    if (isLowered === true && charged === 0n) return;
  }
  if (outcome === "answered") charge.deliver();
  else await charge.giveUp().catch(onError);
}

/** The answer of the last charge goes out again, or its handler runs once more, free. */
export async function repeatSale(sale: ChannelSale, repeat: ChannelRepeat): Promise<void> {
  let isEnded = false;
  const giveUp = async (): Promise<void> => {
    isEnded = true;
    await repeat.giveUp().catch(sale.settings.onError);
  };
  try {
    const kept = findAnswer(sale, repeat.sealedAnswer);
    if (kept !== undefined) {
      isEnded = true;
      return await sendKept(sale, repeat, kept);
    }
    if (!(await repeat.beginRun())) {
      isEnded = true;
      repeat.deliver();
      return answerCorrection(sale, repeat.correction);
    }
    if (sale.route.paymentFlow === "upfront") {
      const { outcome } = await streamAnswer(sale, repeat);
      if (outcome !== "answered") return await giveUp();
      isEnded = true;
      return repeat.deliver();
    }
    const work = prepareWork(sale);
    const ran = await holdRun(sale, { isPaid: true, release: giveUp });
    if (ran === undefined) return;
    const { held } = ran;
    work.end();
    const { answer } = priceAnswer(sale, work, ran.answer);
    if (answer.status >= 400) {
      await giveUp();
      return held.release(answer);
    }
    isEnded = true;
    await deliverAnswer(sale, repeat, {
      answer,
      send: (decorate) => held.release(answer, decorate),
    });
  } finally {
    if (!isEnded) await giveUp();
  }
}

function sendKept(sale: ChannelSale, paid: Paid, answer: HeldAnswer): Promise<void> {
  const { response } = sale;
  return deliverAnswer(sale, paid, {
    answer,
    send(decorate) {
      for (const [name, value] of answer.headers) response.setHeader(name, value);
      decorate();
      sendAnswer(response, answer);
    },
  });
}

/** @returns `undefined` where the outcome is not known: the same request finds out */
async function chargeFor(
  { settings }: ChannelSale,
  run: ChannelRun,
  charge: Parameters<ChannelRun["charge"]>[0],
) {
  try {
    return await run.charge(charge);
  } catch (error) {
    settings.onError(error);
    return undefined;
  }
}

/** The charges that a handler makes while its answer is held. */
interface Work {
  parts: ChargedAmount;
  isWaived: () => boolean;
  /** The answer is complete: what is charged from now on would be lost. */
  end: () => void;
}

function prepareWork(sale: ChannelSale): Work {
  const { price } = sale;
  const parts = createChargedAmount(price);
  let isWaived = false;
  let isEnded = false;
  sale.request.payment = {
    paymentFlow: "authorization",
    waive: () => {
      isWaived = true;
    },
    charge(part) {
      if (isEnded) return false;
      if (parts.add(part)) return true;
      throw new RangeError(`A request is charged ${price} at most`);
    },
    ...paymentOf(sale),
  };
  return {
    parts,
    isWaived: () => isWaived,
    end() {
      isEnded = true;
    },
  };
}

/**
 * The amount of an answer: of the handler's calls, else of its `Settlement-Overrides` header, else
 * the price. `undefined`: the header cannot be read, which was reported.
 */
function priceAnswer(
  { price, requirements, settings }: ChannelSale,
  { parts }: Work,
  held: HeldAnswer,
): { answer: HeldAnswer; amount: bigint | undefined } {
  const { answer, override } = takeOverride(held, { price, requirements });
  if (override instanceof Error) {
    settings.onError(override);
    return { answer, amount: undefined };
  }
  return { answer, amount: parts.sum() ?? override ?? price };
}
