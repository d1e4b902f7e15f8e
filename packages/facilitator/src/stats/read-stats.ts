import type { Address, Network } from "@coinslot/protocol";
import type { BookRange } from "../books/book-entry.ts";
import { sumEntries } from "../books/sum-entries.ts";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { findSoldTexts } from "../ledger/queries/find-route-of.ts";
import { sumRefunds } from "../ledger/queries/sum-refunds.ts";

/** A division of the totals, besides network and token. */
export type TotalsGroup = "day" | "route";

/** Money of a token, from its confirmed payments, the charges of channels, and refunds. */
export interface MoneyTotal {
  day: number | undefined;
  route: string | undefined;
  network: Network;
  asset: Address;
  /** Less those that a reorganisation has taken back, like the income. */
  payments: number;
  /** Of channels. */
  charges: number;
  /** Of both, less what was taken back. */
  income: bigint;
  refunds: number;
  refunded: bigint;
}

/** Gas of a network, in its native coin. It belongs to transactions, which know no route. */
export interface GasTotal {
  day: number | undefined;
  network: Network;
  transactions: number;
  wei: bigint;
}

/** Sums the books and the refunds of a time, of whole days. Memory holds the groups alone. */
export async function readMoney(
  reads: LedgerReads,
  { range, by }: { range: BookRange; by: readonly TotalsGroup[] },
): Promise<{ money: MoneyTotal[]; gas: GasTotal[] }> {
  const money = new Map<string, MoneyTotal>();
  const gas = new Map<string, GasTotal>();
  const dayOf = (day: number) => (by.includes("day") ? day : undefined);

  function totalOf(
    key: Pick<MoneyTotal, "network" | "asset">,
    { day: ofDay, route: ofRoute }: { day: number; route: string | undefined },
  ): MoneyTotal {
    const { network, asset } = key;
    const day = dayOf(ofDay);
    const route = by.includes("route") ? ofRoute : undefined;
    const name = `${day} ${network} ${asset} ${route}`;
    const total = money.get(name) ?? {
      ...{ day, route, network, asset },
      ...{ payments: 0, charges: 0, income: 0n, refunds: 0, refunded: 0n },
    };
    money.set(name, total);
    return total;
  }

  for await (const page of sumEntries(reads, range)) {
    for (const { kind, isReversal, network, asset, count, amount, ...of } of page) {
      const sign = isReversal ? -1 : 1;
      if (kind === "payment" && asset !== undefined) {
        const total = totalOf({ network, asset }, of);
        total.payments += sign * count;
        total.income += BigInt(sign) * amount;
      } else if (kind === "charge" && asset !== undefined) {
        const total = totalOf({ network, asset }, of);
        // A charge that was lowered is still one.
        if (!isReversal) total.charges += count;
        total.income += BigInt(sign) * amount;
      } else if (kind === "gas") {
        const day = dayOf(of.day);
        const name = `${day} ${network}`;
        const total = gas.get(name) ?? { day, network, transactions: 0, wei: 0n };
        total.transactions += sign * count;
        total.wei += BigInt(sign) * amount;
        gas.set(name, total);
      }
    }
  }
  const refunds = await sumRefunds(reads, range);
  const ids = refunds.flatMap(({ routeId }) => (routeId === null ? [] : [routeId]));
  const names = await findSoldTexts(reads, [...new Set(ids)]);
  for (const { network, asset, day, routeId, count, amount } of refunds) {
    const route = routeId === null ? undefined : names.get(routeId);
    const total = totalOf({ network, asset }, { day, route });
    total.refunds += count;
    total.refunded += amount;
  }
  const byDay = (one: { day: number | undefined }, other: { day: number | undefined }) =>
    (one.day ?? 0) - (other.day ?? 0);
  return { money: [...money.values()].sort(byDay), gas: [...gas.values()].sort(byDay) };
}
