import type { IncomingMessage, ServerResponse } from "node:http";
import type {
  Address,
  ChannelPayment,
  ChannelReceipt,
  PaymentRequirements,
  ResourceInfo,
  SettleResponse,
  WireName,
} from "@coinslot/protocol";
import type { Request, Response } from "express";
import type { Offer, OfferedWay } from "../offer/offer.ts";
import type { Purchase } from "../offer/purchase.ts";
import type { Refusal } from "../refusals.ts";
import type { PaymentTerms } from "../routes/read-payment-option.ts";

/**
 * A way that a request speaks of payment. The rest of this package knows this interface and
 * `registry.ts`, and no wire by name.
 *
 * `Credential` is a payment in the wire's own words. It is normalised to x402, the language of
 * facilitators, when it is matched with an offer.
 */
export interface Wire<Credential = unknown> {
  /** Name in the seller's records: a contract, as every stored value is. */
  readonly name: WireName;

  /** Writes the wire's part of a 402 answer. */
  writeOffer(demand: PaymentDemand): OfferPart;

  /**
   * Payments that a request brings on this wire. A header that speaks of something else, such as
   * another scheme of `Authorization`, brings none.
   */
  countPayments(request: IncomingMessage): number;
  /** Returns whether the wire sells an offer. If not, its header is the application's own. */
  sells?(offer: Offer): boolean;
  /**
   * Reads the payment of a request that brings one.
   *
   * @throws DecodeError where it cannot be read
   * @throws PaymentFault where it can be read, and is no payment for this request
   */
  read(request: Request): Credential;
  /**
   * Removes the payment from a request whose handler runs. A handler that forwards its headers, as
   * proxies do, would pass a signed payment upstream. A logger would record it.
   */
  withhold(request: IncomingMessage): void;

  /** The purchases that a payment may mean: more than one where the wire leaves terms out. */
  match(credential: Credential, offer: Offer): Purchase[];
  /** The terms that a payment states itself, for an offer that has changed since. */
  statedTerms(credential: Credential): StatedTerms;

  /**
   * Puts the receipt of a settlement, good or bad, into the head of an answer. A wire may leave it
   * out of a settlement's failure, or of an error, whose status is set.
   */
  writeReceipt(response: ServerResponse, settlement: SettleResponse, credential: Credential): void;
  /** Removes a receipt that the handler forged, from an answer that has none. */
  removeReceipt?(response: ServerResponse): void;
  /** The answer to a payment that failed; `undefined`: 402, with a fresh offer. */
  refuse(failure: PaymentFailure): Refusal | undefined;
  /** Payments by channels, on a wire that has them. */
  channels?: ChannelWire<Credential>;
}

/** The part of a wire for payments by channels. */
export interface ChannelWire<Credential = unknown> {
  /** The payment of a request; `undefined` where it pays by another scheme. */
  read(credential: Credential): ChannelPayment | undefined;
  /** The part of an offer that a payment accepts. */
  match(payment: ChannelPayment, offer: Offer): OfferedWay | undefined;
  /** Puts the receipt into the head of an answer. */
  writeReceipt(response: ServerResponse, settlement: SettleResponse, extra: ChannelReceipt): void;
}

/** Contents of a 402 answer, in any words. */
export interface PaymentDemand {
  offer: Offer;
  resource: ResourceInfo;
  /** A code for programs, or words where no payment came. */
  error: string;
  /** True if the payment has moved money, where that is said. */
  charged?: boolean;
  /** Hash of the transaction that moved it. */
  transaction?: string;
}

/** One wire's part of a 402 answer. It is cached for as long as its demand stays the same. */
export interface OfferPart {
  /** Members of the JSON body, which all wires share. */
  body?: object;
  /** Media type of the body for a request whose `Accept` names it. */
  mediaType?: string;
  /** Sets the wire's header fields. Called for each answer: a challenge may be fresh each time. */
  writeHead?(response: Response): void;
}

/** Terms of an offer that a payment repeats. */
export interface StatedTerms {
  payTo: Address;
  /** The amount, and the token where the wire names it. */
  price: Pick<PaymentRequirements, "amount"> & Partial<PaymentRequirements>;
}

/** One way to pay as discovery states it. Its price may be a function. */
export type AdvertisedWay = Pick<PaymentTerms, "network" | "price"> &
  Pick<PaymentRequirements, "scheme"> &
  Pick<OfferedWay, "versions" | "mpp">;

/** The wires' part of `x-payment-info`, in both dialects. */
export interface Advertisement {
  /** Entries of `protocols`, as `@agentcash/discovery` reads them. */
  protocols: readonly object[];
  /** Entries of `offers`, as the draft has them. */
  offers: readonly object[];
}

/** A failure whose status depends on the wire. */
export type PaymentFailure =
  | { kind: "malformed"; message: string }
  /** Refused before any settlement; `reason`: for programs. */
  | { kind: "invalid"; reason: string }
  /** Sent for settlement, and not settled: rejected, or its outcome is unknown. */
  | { kind: "unsettled"; settlement: SettleResponse }
  /** Settled, and its handler has reached its maximum of runs. */
  | { kind: "used_up"; settlement: SettleResponse }
  /** Settled, and given back, or about to be. */
  | { kind: "refunded"; settlement: SettleResponse }
  /** Settled and delivered; the buyer's key asks for an answer that is not kept. */
  | { kind: "delivered"; settlement: SettleResponse };

/** A payment that can be read, and pays nothing here. */
export class PaymentFault extends Error {
  override readonly name = "PaymentFault";

  /** For programs: the error of the 402 answer. */
  readonly reason: string;

  constructor(reason: string) {
    super(reason);
    this.reason = reason;
  }
}

/** A payment as it came. The credential goes back to the wire that read it, and to no other. */
export interface Presented {
  wire: Wire;
  credential: unknown;
}
