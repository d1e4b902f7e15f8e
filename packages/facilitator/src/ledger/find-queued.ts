import type { Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Kysely } from "kysely";
import { findOrders, type OrderedPayment } from "./find-orders.ts";
import type { LedgerSchema } from "./ledger-schema.ts";
import { is } from "./states.ts";

/** The oldest queued payments of a network. */
export async function findQueued(options: {
  db: Kysely<LedgerSchema>;
  dialect: Dialect;
  network: Network;
  limit: number;
}): Promise<OrderedPayment[]> {
  const { db, dialect, network, limit } = options;
  return findOrders({
    db,
    dialect,
    where: (query) =>
      query
        .where("network", "=", network)
        .where("state", "=", is("queued"))
        .orderBy("created_at")
        .limit(limit),
  });
}

/** How many payments of a network are queued, counted up to a number: cheaper than to read them. */
export async function countQueued(options: {
  db: Kysely<LedgerSchema>;
  network: Network;
  upTo: number;
}): Promise<number> {
  const { db, network, upTo } = options;
  const row = await db
    .selectFrom(
      db
        .selectFrom("payments")
        .select("created_at")
        .where("network", "=", network)
        .where("state", "=", is("queued"))
        // In any order, PostgreSQL goes through the whole table if it expects to find enough of them soon.
        .orderBy("created_at")
        .limit(upTo)
        .as("queued"),
    )
    .select((select) => select.fn.countAll().as("count"))
    .executeTakeFirst();
  return Number(row?.count ?? 0);
}
