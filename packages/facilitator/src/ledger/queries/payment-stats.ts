import type { Address, Network } from "@coinslot/protocol";
import type { LedgerReads } from "../ledger-context.ts";
import type { PaymentState } from "../schema.ts";

/** Number and sum of an asset's payments in one state. */
export interface PaymentStats {
  network: Network;
  asset: Address;
  state: PaymentState;
  count: number;
  /** In the token's smallest unit. */
  amount: bigint;
}

/**
 * Counts the payments of the ledger by network, asset and state.
 *
 * @param options `createdFrom`: Unix milliseconds: only those created at or after
 */
export async function paymentStats(
  { db, dialect }: LedgerReads,
  { createdFrom = 0 }: { createdFrom?: number | undefined } = {},
): Promise<PaymentStats[]> {
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
