import type { Response } from "express";
import { refuseVisit } from "../answer.ts";
import { leavePlace } from "../load/load.ts";
import { internalError } from "../refusals.ts";
import { ignoreLateWrites } from "../response/ignore-late-writes.ts";
import { overrideMethods } from "../response/override-methods.ts";
import { decorateHead, whenWritten } from "../response/stream-response.ts";
import { isGone } from "../response/when-gone.ts";
import type { ChannelSale } from "./channel-sale.ts";
import { createChargedAmount } from "./charged-amount.ts";
import { decorate, type Paid, settlementOf } from "./deliver-answer.ts";
import { paymentOf } from "./request-payment.ts";
import { overridesHeader } from "./settlement-overrides.ts";

/** Outcome of a handler that answers freely. */
export interface StreamedSale {
  /**
   * `failed`: its status says so. `broken`: the handler has destroyed it. `left`: its buyer has,
   * or it has ended below its length. An end by the gate counts as answered.
   */
  outcome: "answered" | "failed" | "broken" | "left";
  /** The parts that it has charged; `undefined`: none, which means all. */
  charged: bigint | undefined;
  /** A part of the answer may have arrived. */
  hasBegun: boolean;
}

/**
 * Lets the handler of a charged request answer freely, with the receipt in its head. It may charge
 * in parts; the answer ends where the next part exceeds what was charged in advance.
 */
export async function streamAnswer(sale: ChannelSale, paid: Paid): Promise<StreamedSale> {
  const { request, response, next, settings, progress, load, place } = sale;
  const parts = createChargedAmount(paid.amount);
  let isCut = false;
  request.payment = {
    paymentFlow: "upfront",
    settlement: settlementOf(sale),
    charge(part) {
      if (response.writableEnded || isGone(response)) return false;
      if (parts.add(part)) return true;
      isCut = true;
      response.end();
      ignoreLateWrites(response);
      return false;
    },
    ...paymentOf(sale),
  };
  progress.hasRun = true;
  leavePlace(load, place);
  const sent = whenWritten(response);
  const isDestroyed = watchDestroy(response);
  decorateHead(response, () => {
    response.removeHeader(overridesHeader);
    if (response.statusCode < 400) decorate(sale, paid);
  });
  try {
    next();
  } catch (error) {
    settings.onError(error);
    if (response.headersSent) response.destroy();
    else refuseVisit(sale, internalError);
  }
  const written = await sent;
  const outcome = written === "short" && isCut ? "answered" : written;
  const { headersSent: hasBegun } = response;
  const ended = isDestroyed() ? "broken" : "left";
  return {
    outcome: outcome === "disconnected" || outcome === "short" ? ended : outcome,
    charged: parts.sum(),
    hasBegun,
  };
}

/** @returns whether the handler has destroyed the response, while its buyer was there */
function watchDestroy(response: Response): () => boolean {
  const { destroy } = response;
  let isDestroyed = false;
  overrideMethods(response, {
    destroy(error?: Error) {
      // A handler that hears of the end of its request may destroy what is gone already.
      isDestroyed ||= !isGone(response) && !response.req.socket.destroyed;
      return destroy.call(response, error);
    },
  });
  return () => isDestroyed;
}
