import type { IncomingMessage, ServerResponse } from "node:http";
import type {
  Address,
  PaymentRequirements,
  ResourceInfo,
  SettleResponse,
  WireName,
} from "@coinslot/protocol";
import type { Offer } from "../offer/offer.ts";
import type { Purchase } from "../offer/purchase.ts";
import type { Refusal } from "../refusals.ts";

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
  /**
   * Reads the payment of a request that brings one.
   *
   * @throws DecodeError
   */
  read(request: IncomingMessage): Credential;
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
   * out of a settlement's failure, or of a failed `upfront` handler, whose status is set.
   */
  writeReceipt(response: ServerResponse, settlement: SettleResponse, credential: Credential): void;
  /** The answer to a payment that failed; `undefined`: 402, with a fresh offer. */
  refuse(failure: PaymentFailure): Refusal | undefined;
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
  /** Sets the wire's header fields. Called for each answer: a challenge may be fresh each time. */
  writeHead?(response: ServerResponse): void;
}

/** Terms of an offer that a payment repeats. */
export interface StatedTerms {
  payTo: Address;
  /** The amount, and the token where the wire names it. */
  price: Pick<PaymentRequirements, "amount"> & Partial<PaymentRequirements>;
}

/** A failure whose status depends on the wire. */
export type PaymentFailure =
  | { kind: "malformed"; message: string }
  /** Sent for settlement, and not settled: rejected, or its outcome is unknown. */
  | { kind: "unsettled"; settlement: SettleResponse };

/** A payment as it came. The credential goes back to the wire that read it, and to no other. */
export interface Presented {
  wire: Wire;
  credential: unknown;
}
