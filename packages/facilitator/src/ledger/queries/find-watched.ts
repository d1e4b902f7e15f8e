import type { Network } from "@coinslot/protocol";
import type { LedgerReads } from "../ledger-context.ts";
import { is } from "../states.ts";
import { findOrders, type OrderedPayment, type PaymentQuery } from "./find-orders.ts";

/** A page of payments, in the order of their creation. */
interface Page {
  network: Network;
  limit: number;
  /** The last one of the page before. The page is empty if that row is gone. */
  afterId?: string | undefined;
}

/** Failed payments that any sender may still execute. */
export async function findFailed(ledger: LedgerReads, page: Page): Promise<OrderedPayment[]> {
  return findOrders(ledger, (query) =>
    onPage(
      ledger,
      query
        .where("network", "=", page.network)
        .where("state", "=", is("failed"))
        .where("closed_at", "is", null),
      page,
    ),
  );
}

/**
 * Payments in the queue, or in a transaction, that are valid only before a time, in Unix seconds,
 * or less.
 */
export async function findOverdue(
  ledger: LedgerReads,
  options: Page & { state: "queued" | "submitted"; before: bigint },
): Promise<OrderedPayment[]> {
  const { network, state, before } = options;
  return findOrders(ledger, (query) =>
    onPage(
      ledger,
      query
        .where("network", "=", network)
        .where("state", "=", is(state))
        .where("valid_before", "<=", ledger.dialect.amount.encode(before)),
      options,
    ),
  );
}

function onPage({ db }: LedgerReads, query: PaymentQuery, { limit, afterId }: Page): PaymentQuery {
  const page = query.orderBy("created_at").orderBy("id").limit(limit);
  if (!afterId) return page;
  const last = db.selectFrom("payments").select("created_at").where("id", "=", afterId);
  return page
    .where("created_at", ">=", last)
    .where((where) => where.or([where("created_at", ">", last), where("id", ">", afterId)]));
}
