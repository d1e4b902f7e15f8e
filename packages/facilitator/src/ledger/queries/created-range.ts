import type { ExpressionBuilder } from "kysely";
import type { LedgerSchema } from "../schema.ts";
import { sortableIdAt } from "../sortable-id.ts";

/** A range of creation times in Unix milliseconds: from the first on, and before the second. */
export interface CreatedRange {
  createdFrom?: number | undefined;
  createdBefore?: number | undefined;
}

/** Times of ids in Unix milliseconds: from the first on, and before the second. */
export interface IdTimes {
  from: number;
  before: number;
}

export const dayMs = 86_400_000;

/** The day (UTC) of a time, in Unix milliseconds: from the first on, and before the second. */
export function dayOf(time: number): IdTimes {
  const from = Math.floor(time / dayMs) * dayMs;
  return { from, before: from + dayMs };
}

/**
 * An id has the time of its request. Its row has the time of its reservation, which locks and
 * retries may delay. Also bounds a clock that is set back between the two.
 */
const maxDelayMs = 10 * 60_000;

/** The times of the ids of payments that were created in a range. */
export function createdIds({ createdFrom, createdBefore }: CreatedRange): IdTimes {
  return {
    from: createdFrom === undefined ? 0 : createdFrom - maxDelayMs,
    before: createdBefore === undefined ? Number.POSITIVE_INFINITY : createdBefore + maxDelayMs,
  };
}

/** The condition on `created_at` alone, for statements that bound the ids themselves. */
export function isCreatedAt({ createdFrom, createdBefore }: CreatedRange) {
  return (where: ExpressionBuilder<LedgerSchema, "payments">) =>
    where.and([
      ...(createdFrom === undefined ? [] : [where("payments.created_at", ">=", createdFrom)]),
      ...(createdBefore === undefined ? [] : [where("payments.created_at", "<", createdBefore)]),
    ]);
}

/** The condition on `created_at`, and on the ids around it: these have an index in their order. */
export function isCreatedWithin(range: CreatedRange) {
  const { createdFrom, createdBefore } = range;
  const { from, before } = createdIds(range);
  return (where: ExpressionBuilder<LedgerSchema, "payments">) =>
    where.and([
      isCreatedAt(range)(where),
      ...(createdFrom === undefined ? [] : [where("payments.id", ">=", sortableIdAt(from))]),
      ...(createdBefore === undefined ? [] : [where("payments.id", "<", sortableIdAt(before))]),
    ]);
}
