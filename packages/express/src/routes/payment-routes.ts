import type { Address, Network } from "@coinslot/protocol";
import type { Request } from "express";
import type { RouteDiscovery } from "../discovery/route-discovery.ts";
import type { MaybePromise } from "../maybe-promise.ts";
import type { MppMode } from "../mpp-options.ts";
import type { UnpaidResponseBody } from "../offer/unpaid-context.ts";
import type { RefundPolicy } from "./read-refund.ts";

/**
 * A price in a token: its amount, its contract, and the domain under which its transfers are
 * signed.
 */
export interface TokenPrice {
  /** In the token's smallest unit, as a decimal string. */
  amount: string;
  /** The token contract. */
  asset: Address;
  extra: {
    /** EIP-712 domain name of the token contract. */
    name: string;
    /** EIP-712 domain version of the token contract. */
    version: string;
    decimals?: number | undefined;
    /** The only method that is settled here. */
    assetTransferMethod?: "eip3009" | undefined;
  };
}

/**
 * Price of a request: a `TokenPrice`, or an exact decimal amount such as `"$0.001"` of the
 * network's known token. It is never rounded, and never zero: of a number, the digits that
 * JavaScript writes count.
 */
export type Price = TokenPrice | `$${number}` | `${number}` | number;

/** A way to pay by one transfer for each request. */
export interface PaymentOption extends PaymentOptionBase {
  scheme: "exact";
  /**
   * Address that receives the money. A function is called once per request. Any value but an
   * address is refused at start, also `undefined`: a variable of the environment can stand here.
   */
  payTo: string | undefined | ((request: Request) => MaybePromise<string>);
}

/**
 * A way to pay by a payment channel: the buyer puts money into an escrow contract once, and signs a
 * voucher for each request. The price is the most that a request may cost: the handler may charge
 * less. A buyer's channel is bound to `payTo`, the token and `withdrawDelay`. Other values give
 * every buyer a new channel. The money of the old one is stranded until it is given back.
 */
export interface ChannelPaymentOption extends PaymentOptionBase {
  scheme: "batch-settlement";
  /** Address that receives the money. It needs no key here. */
  payTo: string | undefined;
  /**
   * Seconds for which a buyer's withdrawal waits: the time for which the seller may be down. 900 to
   * 2,592,000; default 86,400, a day.
   */
  withdrawDelay?: number | undefined;
  /**
   * The least deposit, in the token's smallest unit; a smaller one is refused. Default ten times
   * the price. Each deposit costs gas, and a signer has 200 a day: ask for a day's requests.
   */
  minDeposit?: string | undefined;
  /** Earlier values, whose channels are served until they are drained. */
  former?: readonly FormerChannelTerms[] | undefined;
}

/** Earlier terms of channels. A member that is left out is today's. */
export interface FormerChannelTerms {
  payTo?: string | undefined;
  receiverAuthorizer?: string | undefined;
  withdrawDelay?: number | undefined;
}

/** One acceptable way to pay. */
export type AcceptedPayment = PaymentOption | ChannelPaymentOption;

interface PaymentOptionBase {
  /** CAIP-2, such as `"eip155:9745"`. */
  network: Network;
  /** A function is called once for each request. */
  price: Price | ((request: Request) => MaybePromise<Price>);
  /** Validity of a payment signed for this way. Default that of the route. */
  maxTimeoutSeconds?: number | undefined;
  /** JSON for the buyer beside the `extra` of the price, and above it. */
  extra?: Readonly<Record<string, unknown>> | undefined;
}

/** Settings of every paid route. */
interface RoutePaymentBase {
  /** At least one way to pay; the buyer chooses. */
  accepts: AcceptedPayment | readonly AcceptedPayment[];
  /** Description of the resource, for people. */
  description?: string | undefined;
  /** Media type of the answer. */
  mimeType?: string | undefined;
  /** Absolute URL of the resource. Default the URL of the request. */
  resource?: string | undefined;
  /** Another body for unpaid requests to this route. The offer stays in the header. */
  unpaidResponseBody?: UnpaidResponseBody | undefined;
  /** Validity of a signed payment. Default 300. */
  maxTimeoutSeconds?: number | undefined;
  /**
   * Request headers that are part of the purchase, besides method, URL and body. With another value
   * it is another request, for which the same payment is not good. Name those that `price` or
   * `payTo` read, and those by which the handler gives more or less.
   */
  varyHeaders?: readonly string[] | undefined;
  /**
   * Offers by MPP beside those of x402. `auto`: for tokens whose EIP-712 domain released buyers
   * know; `true`: for all; `false`: for none. Default: as the middleware.
   */
  mpp?: MppMode | undefined;
  /**
   * `"undelivered"`: a settled payment is given back from the facilitator's float, if its answer
   * was not sent in ten minutes. Default: by the operator alone.
   */
  refund?: RefundPolicy | undefined;
  /**
   * Facts for `paymentMiddleware.discovery`, such as the form of a request; `false`: the route is
   * not listed.
   */
  discovery?: RouteDiscovery | boolean | undefined;
}

/** The money moves when the handler has done its work, and only if it has. */
export interface AuthorizationRoutePayment extends RoutePaymentBase {
  paymentFlow?: "authorization" | undefined;
  /** Time limit of the handler. Default 60; a payment must stay good for longer than that. */
  handlerTimeoutSeconds?: number | undefined;
  /**
   * Fate of the payment when the buyer leaves while the handler runs. `release` charges nothing,
   * `settle` charges and keeps the answer for the same request. By default `release` for safe
   * methods (GET, HEAD, OPTIONS, TRACE) and `settle` for the others, which may have changed
   * something.
   */
  onDisconnect?: "release" | "settle" | undefined;
}

/** The money moves before the handler begins, which then may stream. */
export interface UpfrontRoutePayment extends RoutePaymentBase {
  paymentFlow: "upfront";
}

/** Payment settings of a route. */
export type RoutePayment = AuthorizationRoutePayment | UpfrontRoutePayment;

/** Payment settings of a route beside its handler. */
export type SingleRoutePayment = RoutePayment & {
  /**
   * Name of the route for the seller's records and for `coinslot stop --route`, such as
   * `GET /report`. Routes of one name are stopped together. Default `the route`.
   */
  name?: string | undefined;
};

/** A method of HTTP that a route key may name. */
export type RouteVerb =
  | "DELETE"
  | "GET"
  | "HEAD"
  | "OPTIONS"
  | "PATCH"
  | "POST"
  | "PUT"
  | "QUERY"
  | "SEARCH";

/**
 * Key of the requests to sell: a verb or `*`, a space, and a path as the installed Express writes
 * it. A path alone is for all verbs. A path is the full one or the one relative to the mount.
 */
export type RouteKey = `${RouteVerb | "*"} /${string}` | `/${string}`;

/** The paid routes. The first key that matches a request counts. */
export type PaymentRoutes = { readonly [key in RouteKey]?: RoutePayment };
