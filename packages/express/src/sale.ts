import type {
  Reservation,
  ReservingFacilitator,
  ResourceInfo,
  SettleResponse,
} from "@coinslot/protocol";
import type { NextFunction, Request, Response } from "express";
import type { Load, Place } from "./load/load.ts";
import type { MakeOffer, Offer } from "./offer/offer.ts";
import type { Purchase } from "./offer/purchase.ts";
import type { AnswerMemory } from "./replay/answer-memory.ts";
import type { AnswerSeal } from "./replay/answer-seal.ts";
import type { BodyPool } from "./replay/body-pool.ts";
import type { ReplayLimit } from "./replay/replay-limit.ts";
import type { Endings } from "./reservations/end-reservation.ts";
import type { Turns } from "./reservations/turns.ts";
import type { Route } from "./routes/read-routes.ts";
import type { Settings } from "./settings.ts";
import type { WritePaymentRequired } from "./wires/payment-required-answer.ts";
import type { Presented, Wire } from "./wires/wire.ts";

/** A request to a paid route. */
export interface Visit {
  settings: Settings;
  facilitator: ReservingFacilitator;
  endings: Endings;
  answers: AnswerMemory;
  /** By payer. */
  turns: Turns;
  bodies: BodyPool;
  replays: ReplayLimit;
  load: Load;
  route: Route;
  wires: readonly Wire[];
  makeOffer: MakeOffer;
  writeOffer: WritePaymentRequired;
  request: Request;
  response: Response;
  next: NextFunction;
}

/** A visit with a payment for part of the offer. */
export interface MatchedPayment extends Visit, Purchase {
  /** Its part of the load. */
  place: Place;
  /** The payment as it came. */
  presented: Presented;
  offer: Offer;
  resource: ResourceInfo;
  /** The client whose limits the request counts against. */
  limitKey: string;
}

/** A matched payment that may run its handler. */
export interface Sale extends MatchedPayment {
  reservation: Reservation;
  /** Under the key that the payment was reserved with, if there is one. */
  seal: AnswerSeal | undefined;
  fingerprint: string;
  /** Progress under the reservation: one record, shared by all copies of the sale. */
  progress: { hasRun: boolean };
}

/** A sale whose money has moved. */
export interface PaidSale extends Sale {
  settlement: SettleResponse;
}
