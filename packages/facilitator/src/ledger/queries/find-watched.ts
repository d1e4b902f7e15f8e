import type { Network } from "@coinslot/protocol";
import type { LedgerReads } from "../ledger-context.ts";
import { is } from "../states.ts";
import { findOrders, type OrderedPayment } from "./find-orders.ts";

/**
 * Failed payments that any sender may still execute, after `afterId` in the order of their
 * creation. None if that row is gone.
 */
export async function findFailed(
  ledger: LedgerReads,
  options: { network: Network; limit: number; afterId?: string | undefined },
): Promise<OrderedPayment[]> {
  const { network, limit, afterId } = options;
  return findOrders(ledger, (query) => {
    const failed = query
      .where("network", "=", network)
      .where("state", "=", is("failed"))
      .where("closed_at", "is", null)
      .orderBy("created_at")
      .orderBy("id")
      .limit(limit);
    if (!afterId) return failed;
    const last = ledger.db.selectFrom("payments").select("created_at").where("id", "=", afterId);
    return failed
      .where("created_at", ">=", last)
      .where((where) => where.or([where("created_at", ">", last), where("id", ">", afterId)]));
  });
}

/**
 * Payments in the queue, or in a transaction, that are valid only before a time, in Unix seconds, or
 * less.
 */
export async function findOverdue(
  ledger: LedgerReads,
  options: { network: Network; state: "queued" | "submitted"; before: bigint; limit: number },
): Promise<OrderedPayment[]> {
  const { network, state, before, limit } = options;
  return findOrders(ledger, (query) =>
    query
      .where("network", "=", network)
      .where("state", "=", is(state))
      .where("valid_before", "<=", ledger.dialect.amount.encode(before))
      .orderBy("created_at")
      .limit(limit),
  );
}
