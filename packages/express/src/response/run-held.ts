import { ConfigurationError, type ReleaseCause } from "@coinslot/protocol";
import { refuseVisit } from "../answer.ts";
import { holdBytes, type Place } from "../load/load.ts";
import { refuseLoad } from "../load/overload-report.ts";
import {
  handlerTimeout,
  internalError,
  overloadedUncharged,
  type Refusal,
  responseTooLarge,
} from "../refusals.ts";
import { releaseSale } from "../reservations/end-reservation.ts";
import type { PaidSale, Sale, Visit } from "../sale.ts";
import type { HeldAnswer } from "./held-answer.ts";
import { type HeldResponse, holdResponse } from "./hold-response.ts";
import { runHandler } from "./run-handler.ts";
import { isGone } from "./when-gone.ts";

/** A handler's complete answer, held. */
export interface HeldRun {
  held: HeldResponse;
  answer: HeldAnswer;
}

/** A request whose handler may run. */
export interface RunningVisit extends Visit {
  /** Its part of the load. */
  place: Place;
  progress: { hasRun: boolean };
}

/** The right to run a handler. */
export interface RunRight {
  /** The money has moved already. */
  isPaid: boolean;
  /** Ends the right, where the run comes to nothing. */
  release(cause: ReleaseCause): Promise<void>;
}

function wentPast(key: string): string {
  return `"${key}" is answered by a method of ServerResponse.prototype, past the gate: nothing of it was sent`;
}

const safeMethods = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/** Returns whether a method changes nothing. */
export function isSafeMethod(method: string): boolean {
  return safeMethods.has(method);
}

/**
 * Runs the handler of a sale and holds its answer.
 *
 * @returns `undefined` when there is none: the sale is released, and the buyer answered.
 */
export async function runHeld(
  sale: Sale | PaidSale,
): Promise<(HeldRun & { isWaived: boolean }) | undefined> {
  const { request, payment } = sale;
  let isWaived = false;
  request.payment = {
    scheme: "exact",
    paymentFlow: "authorization",
    payer: payment.id.payer,
    amount: payment.authorization.value.toString(),
    asset: payment.asset,
    network: payment.network,
    waive: () => {
      isWaived = true;
    },
  };
  const isPaid = "settlement" in sale;
  const release = (cause: ReleaseCause) => releaseSale(sale, cause);
  const run = await holdRun(sale, { isPaid, release });
  return run && { isWaived, ...run };
}

/**
 * Runs a handler and holds its answer.
 *
 * @returns `undefined` when there is none: the right to run is released, and the buyer answered.
 */
export async function holdRun(
  visit: RunningVisit,
  { isPaid, release }: RunRight,
): Promise<HeldRun | undefined> {
  const { settings, route, request, response, next, progress, load, place } = visit;
  const { maxResponseBytes } = settings;
  // Not before anything that may throw: what is held must be released.
  const held = holdResponse(response, {
    maxResponseBytes,
    mayHold(bytes) {
      if (!isPaid && load.heldBytes + bytes > settings.maxHeldBytes) return false;
      holdBytes(load, place, place.heldBytes + bytes);
      return true;
    },
  });
  const onDisconnect = route.onDisconnect ?? (isSafeMethod(request.method) ? "release" : "settle");
  // A paid handler runs to its end: its answer is kept for a while, and runs are counted.
  const endsOnDisconnect = onDisconnect === "release" && !isPaid;
  progress.hasRun = true;
  const outcome = await runHandler({
    response,
    held,
    next,
    timeoutSeconds: route.handlerTimeoutSeconds,
    endsOnDisconnect,
  });
  switch (outcome.kind) {
    case "answered":
      // Before a settlement begins, which cannot be undone.
      if (endsOnDisconnect && isGone(response)) return leave();
      return { held, answer: outcome.answer };
    case "too_large":
      return giveUp(responseTooLarge({ maxResponseBytes, isPaid }));
    case "no_room":
      refuseLoad(load, settings, settings.onError);
      return giveUp(overloadedUncharged);
    case "timed_out":
      return giveUp(handlerTimeout({ isPaid }));
    case "mixed":
      return giveUp(internalError);
    case "bypassed":
      settings.onError(new ConfigurationError("A handler", [wentPast(route.key)]));
      return giveUp(internalError);
    case "thrown":
      settings.onError(outcome.error);
      return giveUp(internalError);
    case "destroyed":
      await release("handler_failed");
      return undefined;
    case "disconnected":
      return leave();
  }

  async function leave(): Promise<undefined> {
    await release("disconnected");
    held.replace(() => response.end());
  }

  async function giveUp(refusal: Refusal): Promise<undefined> {
    await release("handler_failed");
    held.replace(() => {
      // The handler may run on, and fail: Express then destroys the connection, on which other
      // requests would wait by now.
      response.setHeader("Connection", "close");
      refuseVisit(visit, refusal);
    });
  }
}
