import type { OfferProbe, Probe } from "./probe.ts";
import type { WireName } from "./way.ts";

/** Result of a check. `not checked` always has its reason beside it. */
export type Status = "passed" | "failed" | "warning" | "not offered" | "not checked";

/** Result of a check, in words of ours. */
export interface Finding {
  status: Status;
  found: string;
}

interface CheckBase {
  /** As `--only` names it. */
  name: string;
  /** Maximum number of payments: for each protocol, or for a whole run of a route check. */
  payments: number;
  /** True if it looks at the one purchase that such checks share. */
  usesPurchase?: boolean;
  /** A route that the person has to name. */
  needs?: "other" | "failing";
}

/** A check of the route as a whole. */
export type RouteCheck = CheckBase & { scope: "route" } & (
    | { needsPayer: false; run(probe: OfferProbe): Promise<Finding> }
    | { needsPayer: true; run(probe: Probe): Promise<Finding> }
  );

/** A check of each protocol that is offered. */
export type WireCheck = CheckBase & { scope: "wire" } & (
    | { needsPayer: false; run(probe: OfferProbe, wire: WireName): Promise<Finding> }
    | { needsPayer: true; run(probe: Probe, wire: WireName): Promise<Finding> }
  );

/** A check of a seller. */
export type Check = RouteCheck | WireCheck;

export function passed(found: string): Finding {
  return { status: "passed", found };
}

export function failed(found: string): Finding {
  return { status: "failed", found };
}

export function warning(found: string): Finding {
  return { status: "warning", found };
}

/** Judges answers without a success to what must be refused. */
export function judgeRefusals(found: string, statuses: readonly number[]): Finding {
  // A rate limiter has not looked at the payment.
  if (statuses.includes(429)) return notChecked(`${found}: the seller limits the rate`);
  return statuses.some((status) => status >= 500) ? warning(found) : passed(found);
}

export function notChecked(found: string): Finding {
  return { status: "not checked", found };
}
