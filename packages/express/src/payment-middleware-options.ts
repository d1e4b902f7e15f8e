import type { Address, PaymentRequirements, Paywall, ReservationStore } from "@coinslot/protocol";
import type { Application, Request } from "express";
import type { MaybePromise } from "./maybe-promise.ts";
import type { MppMode, MppOptions } from "./mpp-options.ts";
import type { ClientKey } from "./reservations/limit-key.ts";

/** Settings of `paymentMiddleware` beside its routes. */
export interface PaymentMiddlewareOptions {
  /**
   * The address under which buyers reach this application, such as `https://api.example.com`. It
   * has the path that a proxy cuts from requests, if it does. Offers name the resource by it. The
   * default is the request's `Host` header, or a proxy's under `trust proxy`. Without a
   * facilitator, `COINSLOT_PUBLIC_URL` sets it too.
   */
  publicUrl?: string | undefined;
  /**
   * The application whose Express reads the route keys. Needed where it runs on another Express
   * than this package finds, and keys hold wildcards: NestJS brings its own
   * (`app.getHttpAdapter().getInstance()`).
   */
  app?: Application | undefined;
  /**
   * Writes the names from before CAIP-2 (`base`, `polygon`) into version 1 offers, for the networks
   * that have one. Clients that know only these names can then pay. Other networks are left out of
   * these offers: such clients read no offer that names an unknown network. Default false.
   */
  legacyNetworkNames?: boolean | undefined;
  /**
   * Offers by MPP, the `Payment` scheme of HTTP authentication, beside those of x402. `auto`: for
   * tokens whose EIP-712 domain released buyers know; `true`: for all; `false`: for none. An object
   * has further settings. Default `auto`.
   */
  mpp?: MppMode | MppOptions | undefined;
  /**
   * Store of reservations for a facilitator that keeps none: a remote one, or another
   * implementation's. The default is the memory of this process, as `createReservationStore()`.
   * These reservations end with the process, and no other process sees them.
   */
  reservations?: ReservationStore | undefined;
  /**
   * Serves a request free of charge: for a subscriber, a holder of a key. After a throw, the
   * request is not served.
   */
  grantAccess?: ((request: Request) => MaybePromise<boolean>) | undefined;
  /**
   * Refuses a payer with 403, before anything is reserved. Return the reason in words, or nothing
   * to let the payment go on. The signature has not been checked yet: the payer is the one that the
   * payment claims.
   */
  refusePayer?: ((context: RefusePayerContext) => MaybePromise<string | undefined>) | undefined;
  /**
   * The page for browsers in place of the JSON of a 402, such as `paywall()` of
   * `@coinslot/paywall`. By default, a plain page names the price and a command that pays.
   */
  paywall?: Paywall | undefined;
  /**
   * Another body for unpaid requests, instead of JSON and page. The offer stays in the header.
   */
  unpaidAnswer?:
    | ((context: UnpaidAnswerContext) => MaybePromise<UnpaidAnswer | undefined>)
    | undefined;
  /**
   * Largest request body of a paid request, in bytes: it is read to recognise the request again.
   * Default 1 MiB.
   */
  maxRequestBytes?: number | undefined;
  /**
   * Most bytes of request bodies that this process holds for payments which are not verified yet.
   * One client may have an eighth. Beyond that, and beyond all of it, the slowest body is dropped
   * (503). Default 64 MiB, at least `maxRequestBytes`.
   */
  maxUnverifiedBytes?: number | undefined;
  /**
   * Names the client of a request, for its share of `maxUnverifiedBytes`: an API key, a session.
   * The default is its address under the application's `trust proxy`, of IPv6 the first 64 bits.
   */
  clientKey?: ClientKey | undefined;
  /**
   * Largest answer that is held until it is paid, in bytes. Default 4 MiB; larger ones are sold
   * `upfront`.
   */
  maxResponseBytes?: number | undefined;
  /**
   * Most paid requests that this process works on, those of all its gates together. Others get 503
   * `overloaded` with `Retry-After`, before anything is reserved. A payment under way goes first: a
   * 64th more is for these. Choose it as sales per second times seconds to settle. Default 1,000.
   */
  maxPaidRequests?: number | undefined;
  /**
   * Most bytes that this process holds for paid requests: bodies that were read, and answers until
   * they have gone out. At the limit, new payments get 503 `overloaded`. Default 256 MiB, or the
   * largest request with its answer if that is more.
   */
  maxHeldBytes?: number | undefined;
  /**
   * Largest answer that is kept, in bytes. It is kept for a buyer with an idempotency key, and in
   * memory where a paid answer did not arrive. Default 256 KiB.
   */
  maxKeptAnswerBytes?: number | undefined;
  /** Receives faults that no caller sees. By default, their message goes to standard error. */
  onError?: ((error: unknown) => void) | undefined;
  /** Unix milliseconds. */
  now?: (() => number) | undefined;
}

/** Argument of `refusePayer`. */
export interface RefusePayerContext {
  request: Request;
  /** Lower case. */
  payer: Address;
  requirements: PaymentRequirements;
}

/** Argument of `unpaidAnswer`. */
export interface UnpaidAnswerContext {
  request: Request;
  accepts: readonly PaymentRequirements[];
}

/** A body for an unpaid request. */
export interface UnpaidAnswer {
  /** Media type, such as `text/html; charset=utf-8`. */
  contentType: string;
  body: string;
}
