import type { Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Kysely } from "kysely";
import type { LedgerSchema } from "../schema.ts";
import { is } from "../states.ts";
import { findOrders, type OrderedPayment } from "./find-orders.ts";

/**
 * Payments of payers with code go `alone`; all others are `shared`, and go together where they can.
 */
export type Lane = "shared" | "alone";

/** The oldest queued payments of one lane of a network. */
export async function findQueued(options: {
  db: Kysely<LedgerSchema>;
  dialect: Dialect;
  network: Network;
  lane: Lane;
  limit: number;
}): Promise<OrderedPayment[]> {
  const { db, dialect, network, lane, limit } = options;
  return findOrders({
    db,
    dialect,
    where: (query) =>
      query
        .where("network", "=", network)
        .where("state", "=", is("queued"))
        .where("is_alone", "=", isAlone(lane))
        .orderBy("created_at")
        .limit(limit),
  });
}

/**
 * Number of queued payments of a lane, or of a network, counted up to a bound: cheaper than to read
 * them.
 */
export async function countQueued(options: {
  db: Kysely<LedgerSchema>;
  network: Network;
  lane?: Lane | undefined;
  upTo: number;
}): Promise<number> {
  const { db, network, lane, upTo } = options;
  const row = await db
    .selectFrom(
      db
        .selectFrom("payments")
        .select("created_at")
        .where("network", "=", network)
        .where("state", "=", is("queued"))
        .$if(lane !== undefined, (query) => query.where("is_alone", "=", isAlone(lane)))
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

function isAlone(lane: Lane | undefined): 0 | 1 {
  return lane === "alone" ? 1 : 0;
}
