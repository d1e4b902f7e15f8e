import type { Address, Network } from "@coinslot/protocol";
import type { StoredAmount } from "@coinslot/storage";
import { sql } from "kysely";
import type { LedgerReads } from "../ledger-context.ts";

const dayMs = 86_400_000;

/** Refunds of a day that have moved money, by what they gave back. */
export interface RefundSum {
  /** Whole days since 1970, in UTC: that of their confirmation. */
  day: number;
  network: Network;
  asset: Address;
  /** A name of `sold_names`; `null` where the payment names no route, or is deleted. */
  routeId: number | null;
  count: number;
  amount: bigint;
}

/** Sums refunds by day, token and the route of the sale. The books know no route of theirs. */
export async function sumRefunds(
  { db, dialect }: LedgerReads,
  range: { from: number; before: number },
): Promise<RefundSum[]> {
  const rows = await db
    .selectFrom("refunds")
    .leftJoin("payments", "payments.id", "refunds.payment_id")
    .leftJoin("archived_payments", "archived_payments.id", "refunds.payment_id")
    .where("refunds.state", "in", ["confirmed", "final"])
    .where("refunds.confirmed_at", ">=", range.from)
    .where("refunds.confirmed_at", "<", range.before)
    .select(["refunds.network", "refunds.asset"])
    .select(sql<number>`refunds.confirmed_at / ${sql.lit(dayMs)}`.as("day"))
    .select((row) =>
      row.fn.coalesce("payments.route_id", "archived_payments.route_id").as("sold_route"),
    )
    .select((row) => [
      row.fn.countAll<number | string>().as("count"),
      sql<StoredAmount>`${dialect.amount.sum(row.ref("refunds.amount"))}`.as("amount"),
    ])
    .groupBy(["refunds.network", "refunds.asset", "day", "sold_route"])
    .execute();
  return rows.map(({ network, asset, day, sold_route, count, amount }) => ({
    network,
    asset,
    day: Number(day),
    routeId: sold_route,
    count: Number(count),
    amount: dialect.amount.decode(amount),
  }));
}
