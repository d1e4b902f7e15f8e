import type { Network } from "@coinslot/protocol";
import type { LedgerReads } from "../ledger-context.ts";
import { is } from "../states.ts";
import { findOrders, type OrderedPayment } from "./find-orders.ts";

/**
 * Payments of payers with code go `alone`; all others are `shared`, and go together where they can.
 */
export type Lane = "shared" | "alone";

/** The oldest queued payments of one lane of a network. */
export async function findQueued(
  ledger: LedgerReads,
  { network, lane, limit }: { network: Network; lane: Lane; limit: number },
): Promise<OrderedPayment[]> {
  return findOrders(ledger, (query) =>
    query
      .where("network", "=", network)
      .where("state", "=", is("queued"))
      .where("is_alone", "=", aloneColumn(lane))
      .orderBy("created_at")
      .limit(limit),
  );
}

/**
 * Number of queued payments of a lane, or of a network, counted up to a bound. That is cheaper than
 * to read them.
 */
export async function countQueued(
  { db }: LedgerReads,
  { network, lane, upTo }: { network: Network; lane?: Lane | undefined; upTo: number },
): Promise<number> {
  const row = await db
    .selectFrom(
      db
        .selectFrom("payments")
        .select("created_at")
        .where("network", "=", network)
        .where("state", "=", is("queued"))
        .$if(lane !== undefined, (query) => query.where("is_alone", "=", aloneColumn(lane)))
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

function aloneColumn(lane: Lane | undefined): 0 | 1 {
  return lane === "alone" ? 1 : 0;
}
