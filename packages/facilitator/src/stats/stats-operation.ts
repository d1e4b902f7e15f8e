import { addressSchema, networkSchema } from "@coinslot/protocol";
import * as z from "zod";
import { sumVisits, type VisitGroup } from "../ledger/queries/sum-visits.ts";
import { defineOperation } from "../operators/operation.ts";
import { OperationRefusedError } from "../operators/operation-refused-error.ts";
import { readMoney } from "./read-stats.ts";

const dayMs = 86_400_000;
/** Later than every row. */
const endOfTime = 8_640_000_000_000_000;
/** Rows of an answer: some megabytes. */
const maxRows = 20_000;
/** The books of ten million payments. */
const timeoutMs = 120_000;
const daySchema = z.iso.date();
/** Below zero where a reorganisation has taken back more in a time than came in. */
const amount = z
  .string()
  .regex(/^-?\d{1,120}$/)
  .transform(BigInt);
const groups = ["day", "route"] as const;
const ofGroup = { day: z.string().optional(), route: z.string().nullish() };

/**
 * Totals of money, gas and visits. Amounts are in the smallest unit. Money is by network and token,
 * gas by network: its asset is the native coin. Members `day` and `route` are there if asked for.
 */
export const statsOperation = defineOperation({
  name: "stats",
  access: "read",
  timeoutMs,
  argument: z.strictObject({
    /** The first day, in UTC, such as `2026-11-20`. */
    from: daySchema.optional(),
    /** The day after the last one. */
    before: daySchema.optional(),
    by: z.array(z.enum(groups)).max(groups.length).optional(),
  }),
  result: z.object({
    money: z.array(
      z.object({
        ...ofGroup,
        network: networkSchema,
        asset: addressSchema,
        payments: z.number(),
        /** Charges on channels. Their amounts are part of the income. */
        charges: z.number().default(0),
        income: amount,
        refunds: z.number(),
        refunded: amount,
      }),
    ),
    gas: z.array(
      z.object({
        day: z.string().optional(),
        network: networkSchema,
        transactions: z.number(),
        wei: amount,
      }),
    ),
    /** `offered`: no payment came. `null` where network and token are not known. */
    visits: z.array(
      z.object({
        ...ofGroup,
        network: z.string().nullable(),
        asset: z.string().nullable(),
        reason: z.string(),
        count: z.number(),
      }),
    ),
  }),
  async run(reads, { from, before, by = [] }) {
    const range = {
      from: from === undefined ? 0 : Date.parse(from),
      before: before === undefined ? endOfTime : Date.parse(before),
    };
    const days = {
      fromDay: from === undefined ? undefined : range.from / dayMs,
      beforeDay: before === undefined ? undefined : range.before / dayMs,
    };
    const { money, gas } = await readMoney(reads, { range, by });
    const visitGroups: VisitGroup[] = [
      ...groups.filter((group) => by.includes(group)),
      "network",
      "asset",
      "reason",
    ];
    const visits = await sumVisits(reads, { ...days, by: visitGroups, limit: maxRows + 1 });
    if (Math.max(money.length, gas.length, visits.length) > maxRows) {
      throw new OperationRefusedError(
        "too_many_rows",
        `There are more than ${maxRows} totals: name fewer days, or fewer divisions`,
      );
    }
    const ofRow = (row: { day?: number | undefined; route?: string | undefined }) => ({
      ...(by.includes("day") ? { day: formatDay(row.day ?? 0) } : {}),
      ...(by.includes("route") ? { route: row.route || null } : {}),
    });
    return {
      money: money.map(
        ({ network, asset, payments, charges, income, refunds, refunded, ...row }) => ({
          ...ofRow(row),
          ...{ network, asset, payments, charges, refunds },
          income: String(income),
          refunded: String(refunded),
        }),
      ),
      gas: gas.map(({ day, network, transactions, wei }) => ({
        ...(day === undefined ? {} : { day: formatDay(day) }),
        ...{ network, transactions, wei: String(wei) },
      })),
      visits: visits.map(({ network, asset, reason = "other", count, ...row }) => ({
        ...ofRow(row),
        ...{ network: network || null, asset: asset || null, reason, count },
      })),
    };
  },
});

function formatDay(day: number): string {
  return new Date(day * dayMs).toISOString().slice(0, 10);
}
