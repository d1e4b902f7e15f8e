import type { Address, PaymentRequirements, ReservationStore } from "@coinslot/protocol";
import type { Application, Request } from "express";
import type { MaybePromise } from "./maybe-promise.ts";
import type { ClientKey } from "./reservations/limit-key.ts";

/** Settings of `paymentMiddleware` beside its routes. */
export interface PaymentMiddlewareOptions {
  /**
   * The address under which buyers reach this application, such as `https://api.example.com`; with the
   * path that a proxy cuts from requests, if it does. Offers name the resource by it. By default the
   * `Host` header of the request, or what a proxy says under `trust proxy`. Without a facilitator,
   * `COINSLOT_PUBLIC_URL` says it too.
   */
  publicUrl?: string | undefined;
  /**
   * The application whose Express reads the route keys. Needed where it runs on another Express than
   * the one that this package finds, and keys hold wildcards: NestJS brings its own
   * (`app.getHttpAdapter().getInstance()`).
   */
  app?: Application | undefined;
  /**
   * Writes the names from before CAIP-2 (`base`, `polygon`) into version 1 offers, for the networks
   * that have one, so that clients which know nothing else can pay. Other networks are then left out
   * of these offers, since such clients read none that names one they do not know. Default false.
   */
  legacyNetworkNames?: boolean | undefined;
  /**
   * Where reservations live when the facilitator keeps none: a remote one, or another
   * implementation's. By default in the memory of this process, as `createReservationStore()`: they
   * end with it, and no other process knows of them.
   */
  reservations?: ReservationStore | undefined;
  /** Serves a request for nothing: a subscriber, a holder of a key. A throw serves nobody. */
  grantAccess?: ((request: Request) => MaybePromise<boolean>) | undefined;
  /**
   * Turns a payer away with 403, before anything is reserved. Return the reason in words, or nothing
   * to go on. The signature has not been checked yet: it is who the payment says it is from.
   */
  refusePayer?: ((context: RefusePayerContext) => MaybePromise<string | undefined>) | undefined;
  /** Another body for unpaid requests, such as a page for people. The offer stays in the header. */
  unpaidAnswer?:
    | ((context: UnpaidAnswerContext) => MaybePromise<UnpaidAnswer | undefined>)
    | undefined;
  /** Largest request body of a paid request, in bytes: it is read to know the request again. Default 1 MiB. */
  maxRequestBytes?: number | undefined;
  /**
   * Most bytes of request bodies that are held for payments which are not verified yet, in this
   * process. One client may have an eighth; beyond that, and beyond all of it, the slowest body is
   * given up (503). Default 64 MiB, at least `maxRequestBytes`.
   */
  maxUnverifiedBytes?: number | undefined;
  /**
   * Names the client of a request, for its share of `maxUnverifiedBytes`: an API key, a session. By
   * default its address under the application's `trust proxy`, of IPv6 the first 64 bits.
   */
  clientKey?: ClientKey | undefined;
  /** Largest answer that is held back until it is paid, in bytes. Default 4 MiB; larger ones are sold `upfront`. */
  maxResponseBytes?: number | undefined;
  /**
   * Largest answer that is kept, in bytes: for a buyer who brings an idempotency key, and in memory
   * where one that was paid for did not arrive. Default 256 KiB.
   */
  maxKeptAnswerBytes?: number | undefined;
  /** Told of faults that no caller sees. By default their message goes to standard error. */
  onError?: ((error: unknown) => void) | undefined;
  /** Unix milliseconds. */
  now?: (() => number) | undefined;
}

/** What `refusePayer` is told. */
export interface RefusePayerContext {
  request: Request;
  /** Lower case. */
  payer: Address;
  requirements: PaymentRequirements;
}

/** What `unpaidAnswer` is told. */
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
