import * as z from "zod";
import { sumVisits, visitGroups } from "../ledger/queries/sum-visits.ts";
import { defineOperation } from "../operators/operation.ts";
import { OperationRefusedError } from "../operators/operation-refused-error.ts";

const dayMs = 86_400_000;
/** Rows of an answer: some megabytes. */
const maxRows = 20_000;
const daySchema = z.iso.date();

/**
 * Requests to paid routes that bought nothing, in numbers: `reason` is one of `visitReasons`, and
 * `offered` where no payment came. Counts of the last ten seconds are not in it.
 */
export const visitsOperation = defineOperation({
  name: "visits",
  access: "read",
  argument: z.strictObject({
    /** The first day, in UTC, such as `2026-11-20`. */
    from: daySchema.optional(),
    /** The day after the last one. */
    before: daySchema.optional(),
    /** Divisions of the sums. Default day, route and reason. */
    by: z.array(z.enum(visitGroups)).max(visitGroups.length).optional(),
  }),
  result: z.object({
    /** By day, then by the next division. Members are those of `by`; `null`: not known. */
    visits: z.array(
      z.object({
        day: z.string().optional(),
        route: z.string().nullish(),
        reason: z.string().optional(),
        network: z.string().nullish(),
        asset: z.string().nullish(),
        count: z.number(),
      }),
    ),
  }),
  async run(reads, { from, before, by = ["day", "route", "reason"] }) {
    const groups = visitGroups.filter((group) => by.includes(group));
    const sums = await sumVisits(reads, {
      fromDay: from === undefined ? undefined : dayOf(from),
      beforeDay: before === undefined ? undefined : dayOf(before),
      by: groups,
      limit: maxRows + 1,
    });
    if (sums.length > maxRows) {
      throw new OperationRefusedError(
        "too_many_rows",
        `There are more than ${maxRows} sums: name fewer days, or fewer divisions`,
      );
    }
    const visits = sums
      .filter(({ count }) => count > 0)
      .map(({ day, route, network, asset, ...others }) => ({
        ...others,
        ...(day === undefined
          ? {}
          : { day: new Date(Number(day) * dayMs).toISOString().slice(0, 10) }),
        ...(route === undefined ? {} : { route: route || null }),
        ...(network === undefined ? {} : { network: network || null }),
        ...(asset === undefined ? {} : { asset: asset || null }),
      }));
    return { visits };
  },
});

function dayOf(date: string): number {
  return Math.floor(Date.parse(date) / dayMs);
}
