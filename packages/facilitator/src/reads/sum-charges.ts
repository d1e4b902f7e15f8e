import type { Network } from "@coinslot/protocol";
import { readChargesOf } from "../books/read-charges.ts";
import { accounts } from "../ledger/books-schema.ts";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { findSoldTexts } from "../ledger/queries/find-route-of.ts";

/** Charges of a route and token on channels. Amounts are in the token's smallest unit. */
export interface ChargeSum {
  route: string | undefined;
  network: Network;
  asset: `0x${string}`;
  count: number;
  /** Less the charges that were lowered. */
  amount: bigint;
}

/** Sums the charges of whole days, in UTC: the ledger adds them up by the day. */
export async function sumCharges(
  reads: LedgerReads,
  { fromDay, beforeDay }: { fromDay: number; beforeDay: number },
): Promise<ChargeSum[]> {
  const rows = await readChargesOf(reads, { day: fromDay, before: beforeDay });
  const ids = new Set(rows.map(({ route_id }) => route_id).filter((id) => id !== 0));
  const names = await findSoldTexts(reads, [...ids]);
  const sums = new Map<string, ChargeSum>();
  for (const { network, asset, route_id, debit, count, amount } of rows) {
    const isReversal = debit === accounts.income;
    const key = `${network}/${asset}/${route_id}`;
    const known = sums.get(key) ?? {
      ...{ route: names.get(route_id), network, count: 0, amount: 0n },
      asset: `0x${asset.slice(2)}` as const,
    };
    sums.set(key, {
      ...known,
      count: known.count + (isReversal ? 0 : count),
      amount: known.amount + (isReversal ? -amount : amount),
    });
  }
  return [...sums.values()];
}
