import type { Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Kysely } from "kysely";
import { findOrders, type OrderedPayment } from "./find-orders.ts";
import type { LedgerSchema } from "./ledger-schema.ts";
import { is } from "./states.ts";

/** Failed payments that somebody may still execute, after `afterId` in the order of their ids. */
export async function findFailed(options: {
  db: Kysely<LedgerSchema>;
  dialect: Dialect;
  network: Network;
  limit: number;
  afterId?: string | undefined;
}): Promise<OrderedPayment[]> {
  const { db, dialect, network, limit, afterId = "" } = options;
  return findOrders({
    db,
    dialect,
    where: (query) =>
      query
        .where("network", "=", network)
        .where("state", "=", is("failed"))
        .where("closed_at", "is", null)
        .where("id", ">", afterId)
        .limit(limit),
  });
}

/** Submitted payments that are valid only before a time, or less. */
export async function findOverdue(options: {
  db: Kysely<LedgerSchema>;
  dialect: Dialect;
  network: Network;
  /** Unix seconds. */
  before: bigint;
  limit: number;
}): Promise<OrderedPayment[]> {
  const { db, dialect, network, before, limit } = options;
  return findOrders({
    db,
    dialect,
    where: (query) =>
      query
        .where("network", "=", network)
        .where("state", "=", is("submitted"))
        .where("valid_before", "<=", dialect.amount.encode(before))
        .limit(limit),
  });
}
