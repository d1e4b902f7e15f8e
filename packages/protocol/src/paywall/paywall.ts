import type { PaymentRequirements } from "../x402/payment-requirements.ts";
import type { ResourceInfo } from "../x402/resource-info.ts";

/**
 * Writes the page that a person gets in place of the JSON of a 402. The middleware sends it:
 * status, offer headers, caching and the content security policy are not the page's.
 */
export interface Paywall {
  /**
   * Writes a whole HTML document. It loads nothing from elsewhere. The policy admits inline scripts
   * and styles that carry `demand.nonce`. It admits images of the same origin or in `data:` URLs,
   * and requests to the same origin.
   */
  writePage(demand: PageDemand): string;
}

/** Contents of a page that asks a person to pay. Strings are unescaped, and the buyer's in part. */
export interface PageDemand {
  /** Method of the request, which the paid one repeats. Its URL is the page's own. */
  method: string;
  resource: ResourceInfo;
  /** Ways to pay, as the offer states them. */
  accepts: readonly PaymentRequirements[];
  /** Body of the request, which the paid one repeats. */
  form: PageForm;
  /** A command that pays for the same request; `undefined` where its body is not at hand. */
  command: string | undefined;
  /** `Accept-Language` of the request. */
  languages: string;
  /** `Accept` of the request, which the paid one repeats. */
  accept: string;
  /** For inline scripts and styles. */
  nonce: string;
}

/** Body of a request that is to be paid. */
export type PageForm =
  | { state: "none" }
  /** In `application/x-www-form-urlencoded`. */
  | { state: "kept"; body: string }
  /** Too long, of another type, or already read: only its sender can repeat it. */
  | { state: "lost" };
