import type { LedgerReads } from "../../ledger/ledger-context.ts";
import { dayMs } from "../../ledger/queries/created-range.ts";
import { type PaymentStats, paymentStats } from "../../ledger/queries/payment-stats.ts";
import { sumVisits } from "../../ledger/queries/sum-visits.ts";
import { openStates } from "../../ledger/schema.ts";
import { sortableIdAt } from "../../ledger/sortable-id.ts";
import { sumMoney } from "../routes-operation.ts";
import { sumCharges } from "../sum-charges.ts";
import { readStages } from "./read-stages.ts";
import type { Figures } from "./today-result.ts";

/** Income, payments, refunds and stages since midnight. */
export async function readToday(
  reads: LedgerReads,
  { from, to }: { from: number; to: number },
): Promise<Figures> {
  // A day that is not over is summed as a whole one: nothing is in its rest yet.
  const stats = await paymentStats(reads, { createdFrom: from });
  return figuresOf(reads, { from, to, stats });
}

/** The figures of a time whose payments are summed. */
export async function figuresOf(
  reads: LedgerReads,
  { from, to, stats }: { from: number; to: number; stats: readonly PaymentStats[] },
): Promise<Figures> {
  const count = (states: readonly string[]) => countStates(stats, states);
  return {
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    income: sumMoney(stats.filter(({ state }) => state === "confirmed")),
    payments: {
      confirmed: count(["confirmed"]),
      open: count(openStates),
      failed: count(["failed"]),
      expired: count(["expired"]),
      released: count(["released"]),
    },
    channels: await readCharges(reads, from),
    refunds: await readRefunds(reads, { from, to }),
    refusals: await countRefusals(reads, from),
    stages: await readStages(reads, { from, to }),
  };
}

function countStates(stats: readonly PaymentStats[], states: readonly string[]): number {
  return stats
    .filter(({ state }) => states.includes(state))
    .reduce((sum, each) => sum + each.count, 0);
}

/** Charges are summed by the day. */
async function readCharges(reads: LedgerReads, from: number): Promise<Figures["channels"]> {
  const day = Math.floor(from / dayMs);
  const sums = await sumCharges(reads, { fromDay: day, beforeDay: day + 1 });
  return { charges: sums.reduce((all, { count }) => all + count, 0), charged: sumMoney(sums) };
}

/** Visits are counted by the day. `offered`: no payment came. */
async function countRefusals(reads: LedgerReads, from: number): Promise<number> {
  const day = Math.floor(from / dayMs);
  const sums = await sumVisits(reads, {
    fromDay: day,
    beforeDay: day + 1,
    by: ["reason"],
    limit: 1_000,
  });
  return sums
    .filter(({ reason }) => reason !== "offered")
    .reduce((sum, { count }) => sum + count, 0);
}

/** Along the ids of the refunds, which begin with their times. */
async function readRefunds(
  { db, dialect }: LedgerReads,
  { from, to }: { from: number; to: number },
): Promise<Figures["refunds"]> {
  const rows = await db
    .selectFrom("refunds")
    .select(["network", "asset"])
    .select((select) => [
      select.fn.countAll().as("count"),
      dialect.amount.sum(select.ref("amount")).as("amount"),
    ])
    .where("id", ">=", sortableIdAt(from))
    .where("id", "<", sortableIdAt(to))
    .where("state", "<>", "void")
    .groupBy(["network", "asset"])
    .execute();
  const sums = rows.map(({ network, asset, amount }) => ({
    network,
    asset,
    amount: dialect.amount.decode(amount),
  }));
  return {
    count: rows.reduce((sum, row) => sum + Number(row.count), 0),
    amounts: sumMoney(sums),
  };
}
