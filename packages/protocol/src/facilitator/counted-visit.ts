import {
  channelCallReasons,
  channelReasons,
  channelRefusalReasons,
} from "../channels/channel-reason.ts";
import { invalidReasons, settleErrorReasons } from "../x402/reason.ts";

/** Codes of a gate's own refusals, besides the reasons of a facilitator. */
export const gateReasons = [
  "no_matching_requirements",
  "invalid_challenge",
  "invalid_credential",
  "payer_refused",
  "payer_limited",
  "caller_limited",
  "payment_in_use",
  "idempotency_key_in_use",
  "payment_used_up",
  "answer_not_kept",
  "request_too_large",
  "request_dropped",
  "overloaded",
  "payments_stopped",
  "not_ready",
  "facilitator_unavailable",
  "bad_facilitator_response",
  "settlement_failed",
  "handler_timeout",
  "response_too_large",
  "internal_error",
] as const;

/**
 * Reasons why a request to a paid route bought nothing. `offered`: it brought no payment, and got
 * the offer. `other`: a reason of a foreign facilitator. A closed set: nothing of a buyer's is in
 * it.
 */
export const visitReasons = [
  "offered",
  ...invalidReasons,
  ...settleErrorReasons,
  ...channelReasons,
  ...channelRefusalReasons,
  ...channelCallReasons,
  ...gateReasons,
  "other",
] as const;

/** Reason why a request to a paid route bought nothing. */
export type VisitReason = (typeof visitReasons)[number];

const known = new Map<string, VisitReason>(visitReasons.map((reason) => [reason, reason]));

/** The reason that a refusal's code means. */
export function visitReasonOf(code: string): VisitReason {
  return known.get(code) ?? "other";
}

/** A request to a paid route that bought nothing. */
export interface CountedVisit {
  /** The route, as the seller wrote it; empty where another program sells. */
  route: string;
  reason: VisitReason;
  /** Of the offer that the payment was for, where one was matched. */
  network?: string | undefined;
  asset?: string | undefined;
}

/** Counts visits, where a facilitator keeps them. */
export interface VisitCounter {
  /** Adds one, in memory. Never throws, and waits for nothing. */
  countVisit(visit: CountedVisit): void;
}
