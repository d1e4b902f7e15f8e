import type { Address, Network } from "@coinslot/protocol";
import type { Request } from "express";
import type { MaybePromise } from "../maybe-promise.ts";
import type { UnpaidResponseBody } from "../offer/unpaid-context.ts";

/** A price in a token: how much, which contract, and the domain under which its transfers are signed. */
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
    /** The only one that is settled here. */
    assetTransferMethod?: "eip3009" | undefined;
  };
}

/**
 * What a request costs: a `TokenPrice`, or an exact decimal amount such as `"$0.001"` of the token
 * that is known for the network. It is never rounded, and never zero: of a number, the digits that
 * JavaScript writes count.
 */
export type Price = TokenPrice | `$${number}` | `${number}` | number;

/** One acceptable way to pay. */
export interface PaymentOption {
  scheme: "exact";
  /** CAIP-2, such as `"eip155:9745"`. */
  network: Network;
  /** A function is asked once for each request. */
  price: Price | ((request: Request) => MaybePromise<Price>);
  /**
   * Address that receives the money. A function is called once per request. Anything but an address is refused at
   * start, `undefined` too, so that a variable of the environment can stand here.
   */
  payTo: string | undefined | ((request: Request) => MaybePromise<string>);
  /** How long a payment signed for this way stays good. Default that of the route. */
  maxTimeoutSeconds?: number | undefined;
  /** JSON that goes to the buyer beside the `extra` of the price, and above it. */
  extra?: Readonly<Record<string, unknown>> | undefined;
}

/** What every paid route says. */
interface RoutePaymentBase {
  /** At least one way to pay; the buyer chooses. */
  accepts: PaymentOption | readonly PaymentOption[];
  /** What is sold, for people. */
  description?: string | undefined;
  /** Media type of the answer. */
  mimeType?: string | undefined;
  /** What is sold, as an absolute URL. Default the URL of the request. */
  resource?: string | undefined;
  /** Another body for unpaid requests to this route. The offer stays in the header. */
  unpaidResponseBody?: UnpaidResponseBody | undefined;
  /** How long a signed payment stays good. Default 300. */
  maxTimeoutSeconds?: number | undefined;
  /**
   * Request headers that are part of what is bought, besides method, URL and body: with another value
   * it is another request, for which the same payment is not good. Name those that `price` or `payTo`
   * read, and those by which the handler gives more or less.
   */
  varyHeaders?: readonly string[] | undefined;
}

/** The money moves when the handler has done its work, and only if it has. */
export interface AuthorizationRoutePayment extends RoutePaymentBase {
  paymentFlow?: "authorization" | undefined;
  /** How long the handler may take. Default 60; a payment must stay good for longer than that. */
  handlerTimeoutSeconds?: number | undefined;
  /**
   * What becomes of the payment when the buyer leaves while the handler runs: `release` charges
   * nothing, `settle` charges and keeps the answer for the same request. By default `release` for
   * safe methods (GET, HEAD, OPTIONS, TRACE) and `settle` for the others, which may have changed
   * something.
   */
  onDisconnect?: "release" | "settle" | undefined;
}

/** The money moves before the handler begins, which then may stream. */
export interface UpfrontRoutePayment extends RoutePaymentBase {
  paymentFlow: "upfront";
}

/** How a route is paid for. */
export type RoutePayment = AuthorizationRoutePayment | UpfrontRoutePayment;

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
 * Which requests are sold: a verb or `*`, a space, and a path as the installed Express understands
 * paths; or a path alone, for all verbs. A path is the full one or the one relative to the mount.
 */
export type RouteKey = `${RouteVerb | "*"} /${string}` | `/${string}`;

/** The paid routes. The first key that matches a request counts. */
export type PaymentRoutes = { readonly [key in RouteKey]?: RoutePayment };
