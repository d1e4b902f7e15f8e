import type { Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Kysely } from "kysely";
import type { LedgerSchema } from "../schema.ts";
import { is } from "../states.ts";
import { findOrders, type OrderedPayment } from "./find-orders.ts";

/**
 * Failed payments that any sender may still execute, after `afterId` in the order of their
 * creation. None if that row is gone.
 */
export async function findFailed(options: {
  db: Kysely<LedgerSchema>;
  dialect: Dialect;
  network: Network;
  limit: number;
  afterId?: string | undefined;
}): Promise<OrderedPayment[]> {
  const { db, dialect, network, limit, afterId } = options;
  return findOrders({
    db,
    dialect,
    where: (query) => {
      const failed = query
        .where("network", "=", network)
        .where("state", "=", is("failed"))
        .where("closed_at", "is", null)
        .orderBy("created_at")
        .orderBy("id")
        .limit(limit);
      if (!afterId) return failed;
      const last = db.selectFrom("payments").select("created_at").where("id", "=", afterId);
      return failed
        .where("created_at", ">=", last)
        .where((where) => where.or([where("created_at", ">", last), where("id", ">", afterId)]));
    },
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
        .orderBy("created_at")
        .limit(limit),
  });
}
