import type { Network } from "@coinslot/protocol";
import type { LedgerReads } from "../ledger-context.ts";
import { is } from "../states.ts";
import { findOrders, type OrderedPayment } from "./find-orders.ts";

/**
 * Payments of payers with code go `alone`; all others are `shared`, and go together where they can.
 */
export type Lane = "shared" | "alone";

/** A queued payment, and the process whose request holds it. */
export interface QueuedName {
  id: string;
  /** `null`: its request has given it up, and the payment is to be settled all the same. */
  owner: string | null;
}

/** The oldest queued payments of a network, by name: much less than to read them. */
export function findQueued(
  { db }: LedgerReads,
  { network, limit }: { network: Network; limit: number },
): Promise<QueuedName[]> {
  return (
    db
      .selectFrom("payments")
      .select(["id", "owner"])
      .where("network", "=", network)
      .where("state", "=", is("queued"))
      // Only the index of queued payments has this order.
      .orderBy("created_at")
      .limit(limit)
      .execute()
  );
}

/** Those of these payments that are still queued, in the order of their creation. */
export async function readQueued(
  ledger: LedgerReads,
  { network, ids }: { network: Network; ids: readonly string[] },
): Promise<OrderedPayment[]> {
  if (ids.length === 0) return [];
  return findOrders(ledger, (query) =>
    query
      .where("id", "in", ledger.dialect.among(ids))
      .where("network", "=", network)
      .where("state", "=", is("queued")),
  );
}

/** Number of queued payments of a network, counted up to a bound: cheaper than to read them. */
export async function countQueued(
  { db }: LedgerReads,
  { network, upTo }: { network: Network; upTo: number },
): Promise<number> {
  const row = await db
    .selectFrom(
      db
        .selectFrom("payments")
        .select("created_at")
        .where("network", "=", network)
        .where("state", "=", is("queued"))
        // In any order, PostgreSQL goes through the whole table if it expects to find enough of
        // them soon.
        .orderBy("created_at")
        .limit(upTo)
        .as("queued"),
    )
    .select((select) => select.fn.countAll().as("count"))
    .executeTakeFirst();
  return Number(row?.count ?? 0);
}
