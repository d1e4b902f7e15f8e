import type { Address, Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Kysely } from "kysely";
import type { LedgerSchema, PaymentState } from "../schema.ts";

/** Number and sum of an asset's payments in one state. */
export interface PaymentStats {
  network: Network;
  asset: Address;
  state: PaymentState;
  count: number;
  /** In the token's smallest unit. */
  amount: bigint;
}

/** Counts the payments of the ledger by network, asset and state. */
export async function paymentStats(options: {
  db: Kysely<LedgerSchema>;
  dialect: Dialect;
  /** Unix milliseconds: only those created at or after. */
  createdFrom?: number | undefined;
}): Promise<PaymentStats[]> {
  const { db, dialect, createdFrom = 0 } = options;
  const rows = await db
    .selectFrom("payments")
    .select(["network", "asset", "state"])
    .select((select) => [
      select.fn.countAll().as("count"),
      dialect.amount.sum(select.ref("value")).as("amount"),
    ])
    .where("created_at", ">=", createdFrom)
    .groupBy(["network", "asset", "state"])
    .execute();
  return rows.map(({ network, asset, state, count, amount }) => ({
    network,
    asset,
    state,
    count: Number(count),
    amount: dialect.amount.decode(amount),
  }));
}
