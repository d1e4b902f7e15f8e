import type {
  Address,
  ChannelOffer,
  channelPayloadSchema,
  ExactEvmPayload,
  Hex,
  Network,
  SettleResponse,
} from "@coinslot/protocol";
import type * as z from "zod";
import type { RepeatableRequest } from "../send/repeatable-request.ts";
import type { SignedPayment } from "../sign/signed-payment.ts";

/** Protocols in which this client pays, in the order of its preference. */
export const knownProtocols = ["x402", "mpp"] as const;

/** A protocol of payment: x402 in both versions, or the Machine Payments Protocol. */
export type Protocol = (typeof knownProtocols)[number];

/**
 * One way to pay that a seller offers, in the words of no protocol. All of it is the seller's: it
 * is compared with the budget and with the request, and not believed.
 */
export interface OfferedWay {
  protocol: Protocol;
  network: Network;
  asset: Address;
  payTo: Address;
  /** In the token's smallest unit. */
  amount: string;
  /** The offered facts of the token. */
  token: { name?: unknown; version?: unknown; decimals?: unknown };
  /** The reason for which this way is not paid on any network. */
  fault?: string | undefined;
  /** The resource that it is for. */
  resource?: string | undefined;
  /** The resource, in the seller's words. */
  description?: string | undefined;
  /** The nonce that it demands; a random one without. */
  nonce?: Hex | undefined;
  /** Terms of a payment channel, where it is paid by vouchers. Its `fault` is then for all else. */
  channel?: ChannelOffer | undefined;
  /** Writes the payload of a channel as the header of its payment. */
  writeChannel?:
    | ((payload: ChannelMessage, idempotencyKey: string) => SignedPayment["header"])
    | undefined;
  /** Returns the latest end of an authorization for it. Both are unix seconds. */
  endAt(now: number): number;
  /** Writes a signed authorization as the header of its payment. */
  write(paid: ExactEvmPayload, idempotencyKey: string): SignedPayment["header"];
}

/** Payload of a channel in its wire form, amounts as decimal strings. */
export type ChannelMessage = z.input<typeof channelPayloadSchema>;

/** The circumstances in which an offer is read. */
export interface OfferContext {
  request: Pick<RepeatableRequest, "headers">;
  /** Unix milliseconds. */
  now: number;
  /** Time for an offer in a body. */
  timeoutMs: number;
}

/**
 * A protocol in which sellers ask for payment. The rest of this package knows this interface and
 * `registry.ts`, and no protocol by name.
 */
export interface Wire {
  name: Protocol;
  /**
   * Reads the ways to pay of a 402 answer. It can still be read afterwards.
   *
   * @returns `undefined` when the answer speaks of no payment in this protocol
   */
  readOffer(response: Response, context: OfferContext): Promise<OfferedWay[] | undefined>;
  /** Returns whether a request carries a payment. */
  carriesPayment(headers: Headers): boolean;
  /** Returns whether a payment of this protocol travels in a header of this name. */
  writes(header: SignedPayment["header"]["name"]): boolean;
  /** Reads the receipt for a payment. It is the seller's claim. */
  readReceipt(headers: Headers, payment: SignedPayment): SettleResponse | undefined;
  /** True if a receipt is believed only once the chain shows the authorization as used. */
  asksChain: boolean;
  /** Reads the seller's reason from its 402 answer to a payment. The body can be read again. */
  readReason(response: Response): Promise<string | undefined>;
}
