import { isRecord } from "../is-record.ts";
import { isWholeSeconds } from "./read-payment-option.ts";

/**
 * Policy of a route for payments that were settled and not delivered: they are given back. Needs a
 * facilitator with `refunds`.
 */
export type RefundPolicy =
  | "undelivered"
  | {
      when: "undelivered";
      /** Time from the payment's reservation, in which its buyer may still come. Default 600. */
      afterSeconds?: number | undefined;
      /** Also where the buyer has left before its answer. Default false. */
      includeAbandoned?: boolean | undefined;
    };

/** A parsed policy. */
export interface RefundTerms {
  afterSeconds: number;
  includeAbandoned: boolean;
}

const defaultAfterSeconds = 600;
const maxAfterSeconds = 30 * 86_400;
const members = new Set(["when", "afterSeconds", "includeAbandoned"]);

/** Reads a route's policy; `undefined`: nothing is given back by itself. */
export function readRefundPolicy(
  value: unknown,
  tell: (problem: string) => void,
): RefundTerms | undefined {
  if (value === undefined) return undefined;
  const policy = value === "undelivered" ? { when: value } : value;
  if (!isRecord(policy) || policy.when !== "undelivered") {
    tell('refund must be "undelivered", or an object with `when: "undelivered"`');
    return undefined;
  }
  for (const name of Object.keys(policy)) {
    if (!members.has(name)) tell(`refund has an unknown member: ${name}`);
  }
  const { afterSeconds = defaultAfterSeconds, includeAbandoned = false } = policy;
  if (!isWholeSeconds(afterSeconds) || afterSeconds > maxAfterSeconds) {
    tell(`refund.afterSeconds must be a whole number from 1 to ${maxAfterSeconds}`);
    return undefined;
  }
  if (typeof includeAbandoned !== "boolean") {
    tell("refund.includeAbandoned must be true or false");
    return undefined;
  }
  return { afterSeconds, includeAbandoned };
}
