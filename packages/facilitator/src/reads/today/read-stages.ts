import { sql } from "kysely";
import type { LedgerReads } from "../../ledger/ledger-context.ts";
import { sortableIdAt } from "../../ledger/sortable-id.ts";
import type { Figures } from "./today-result.ts";

/** Payments that are measured, and rows that are looked through for them. */
const maxMeasured = 1_000;
const maxExamined = 5_000;

interface Times {
  created_at: number;
  queued_at: number | null;
  submitted_at: number | null;
  confirmed_at: number | null;
  final_at: number | null;
  delivered_at: number | null;
}

const stages: readonly [name: string, from: keyof Times, to: keyof Times][] = [
  ["handler", "created_at", "queued_at"],
  ["plan", "queued_at", "submitted_at"],
  ["confirm", "submitted_at", "confirmed_at"],
  ["deliver", "created_at", "delivered_at"],
  ["finalise", "confirmed_at", "final_at"],
];

/** Percentiles of the stages of the newest confirmed payments of a time, along their ids. */
export async function readStages(
  { db }: LedgerReads,
  { from, to }: { from: number; to: number },
): Promise<Figures["stages"]> {
  const rows: Times[] = await db
    .selectFrom(
      db
        .selectFrom("payments")
        .select(["id", "state", "refund_of", "refund_started_at"])
        .select(["created_at", "queued_at", "submitted_at", "confirmed_at"])
        .select(["final_at", "delivered_at"])
        .where("id", ">=", sortableIdAt(from))
        .where("id", "<", sortableIdAt(to))
        .orderBy("id", "desc")
        .limit(maxExamined)
        .as("newest"),
    )
    .select(["created_at", "queued_at", "submitted_at", "confirmed_at", "final_at"])
    // The begin of a refund writes its own time there.
    .select(
      sql<
        number | null
      >`case when refund_started_at = delivered_at then null else delivered_at end`.as(
        "delivered_at",
      ),
    )
    .where("state", "=", "confirmed")
    .where("refund_of", "is", null)
    .limit(maxMeasured)
    .execute();
  return stages.flatMap(([stage, begin, end]) => {
    const durations = rows.flatMap((row) => {
      const [start, stop] = [row[begin], row[end]];
      return start === null || stop === null ? [] : [Math.max(0, stop - start)];
    });
    if (durations.length === 0) return [];
    durations.sort((one, other) => one - other);
    const at = (share: number) => durations[Math.ceil(share * durations.length) - 1] ?? 0;
    return [{ stage, count: durations.length, p50Ms: at(0.5), p99Ms: at(0.99) }];
  });
}
