import type { LedgerReads } from "../../ledger/ledger-context.ts";
import { type PaymentStats, paymentStats } from "../../ledger/queries/payment-stats.ts";
import type { SellerView } from "../seller-view.ts";
import { figuresOf } from "./read-figures.ts";
import type { Figures } from "./today-result.ts";

/** The same part of a day, as a running process has read it last. */
interface Kept {
  from: number;
  to: number;
  stats: PaymentStats[];
  figures: Figures;
}

/** Figures of a week ago serve for this long: their end moves by a minute, and not by each read. */
const keptMs = 60_000;
/** By process. The command line reads once, and keeps nothing. */
const keptOf = new WeakMap<SellerView, Kept>();

/**
 * Figures of a part of a day that has passed. A running process reads the payments of each minute
 * once: an open console asks again and again, and a day of a busy seller has millions of them.
 */
export async function readLastWeek(
  reads: LedgerReads,
  { from, to }: { from: number; to: number },
  seller: SellerView | undefined,
): Promise<Figures> {
  const kept = seller && keptOf.get(seller);
  const isKept = kept !== undefined && kept.from === from && kept.to <= to;
  if (isKept && to - kept.to < keptMs) return kept.figures;
  const since = isKept ? kept : { to: from, stats: [] };
  const added = await paymentStats(reads, { createdFrom: since.to, createdBefore: to });
  const stats = addStats(since.stats, added);
  const figures = await figuresOf(reads, { from, to, stats });
  if (seller !== undefined) keptOf.set(seller, { from, to, stats, figures });
  return figures;
}

/** Sums by network, asset and state. */
function addStats(kept: readonly PaymentStats[], added: readonly PaymentStats[]): PaymentStats[] {
  const sums = new Map<string, PaymentStats>();
  for (const row of [...kept, ...added]) {
    const key = `${row.network}/${row.asset}/${row.state}`;
    const { count = 0, amount = 0n } = sums.get(key) ?? {};
    sums.set(key, { ...row, count: count + row.count, amount: amount + row.amount });
  }
  return [...sums.values()];
}
