import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import { schemeOf } from "../../schemes/registry.ts";
import type { Claim, Scheme } from "../../schemes/scheme.ts";
import { claimOf } from "../claim-of.ts";

/**
 * The claims of payments, each with its payment, grouped by the scheme that reads their outcomes.
 */
export function claimsByScheme(
  payments: readonly OrderedPayment[],
): Map<Scheme, (Claim & { payment: OrderedPayment })[]> {
  const groups = new Map<Scheme, (Claim & { payment: OrderedPayment })[]>();
  for (const payment of payments) {
    const scheme = schemeOf(payment.payment);
    const claim = { payment, ...claimOf(payment) };
    const group = groups.get(scheme);
    if (group) group.push(claim);
    else groups.set(scheme, [claim]);
  }
  return groups;
}
