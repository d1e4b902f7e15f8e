import type { Network } from "@coinslot/protocol";
import type { StoredAmount, StoredSum } from "@coinslot/storage";
import { type Kysely, sql } from "kysely";
import { accounts } from "../ledger/books-schema.ts";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import type { LedgerSchema } from "../ledger/schema.ts";
import { accountOf, type BookRange, type BookSum, kindOf } from "./book-entry.ts";
import { createNames } from "./name-sold.ts";

const dayMs = 86_400_000;
/** Days read at once: each has a row per token, route and direction. */
const daysAtOnce = 31;

/** Charges of all channels on one day, in the form of the books' sums. */
export interface DayOfCharges {
  day: number;
  network: Network;
  asset: string;
  route_id: number;
  debit: number;
  credit: number;
  count: number;
  amount: bigint;
}

const { receivable, income } = accounts;

/** The charges of channels, in the order of their days. Those of a day belong to a range in it. */
export async function* readCharges(
  reads: LedgerReads,
  range: BookRange,
): AsyncGenerator<BookSum[], void, void> {
  const names = createNames(reads);
  const end = Math.ceil(range.before / dayMs);
  for (let { from } = range; ; ) {
    const day = await findChargedDay(reads.db, { ...range, from });
    if (day === undefined) return;
    const before = Math.min(day + daysAtOnce, end);
    const rows = await readChargesOf(reads, { day, before });
    await names.learn(rows.map(({ route_id }) => route_id));
    yield rows.map(({ route_id, debit, credit, network, asset, count, amount, ...row }) => ({
      ...{ day: row.day, ...kindOf(debit, credit), network, count },
      debit: accountOf(debit),
      credit: accountOf(credit),
      asset: `0x${asset.slice(2)}`,
      route: names.nameOf(route_id),
      amount,
    }));
    from = before * dayMs;
    if (before >= end) return;
  }
}

/**
 * The sums of some days, by day, token, route and direction: those that are added up, and the
 * changes that they lack. Rows of single channels are read only while some are not added up at all.
 *
 * One statement, so that it agrees with itself whatever is added up meanwhile.
 */
export async function readChargesOf(
  { db, dialect }: LedgerReads,
  { day, before }: { day: number; before: number },
): Promise<DayOfCharges[]> {
  const { is_whole } = await db
    .selectFrom("charge_sums_progress")
    .select("is_whole")
    .executeTakeFirstOrThrow();
  const { amount } = dialect;
  const none = sql`${amount.encode(0n)}`;
  const ofDays = sql`day >= ${day} and day < ${before}`;
  const parts = [
    sql`select ${sumKey}, count, amount, ${none} as old_count, ${none} as old_amount
      from charge_sums where ${ofDays}`,
    sql`select ${sumKey}, count, amount, old_count, old_amount
      from charge_changes where ${ofDays} ${is_whole === 1 ? sql`` : sql`and ${isAdded}`}`,
    // Once whole, always whole.
    ...(is_whole === 1
      ? []
      : [
          sql`select day, network, token as asset, route_id, is_reversal, count, amount, ${none}, ${none}
            from channel_sums join channel_terms using (network, contract, channel_id)
            where ${ofDays} and not ${isAdded}`,
        ]),
  ];
  const sum = (column: string) => amount.sum(sql.ref<StoredAmount>(column));
  const { rows } = await sql<SumRow>`
    select ${sumKey}, ${sum("count")} as count, ${sum("amount")} as amount,
      ${sum("old_count")} as old_count, ${sum("old_amount")} as old_amount
    from (${sql.join(parts, sql` union all `)}) as parts
    group by ${sumKey} order by day
  `.execute(db);
  const rise = (now: StoredSum, old: StoredSum) => amount.decode(now) - amount.decode(old);
  return rows.flatMap(({ is_reversal, count, old_count, amount: now, old_amount, ...row }) => {
    const counted = Number(rise(count, old_count));
    if (counted === 0) return [];
    return {
      ...{ ...row, count: counted, amount: rise(now, old_amount) },
      debit: is_reversal === 1 ? income : receivable,
      credit: is_reversal === 1 ? receivable : income,
    };
  });
}

interface SumRow extends Pick<DayOfCharges, "day" | "network" | "asset" | "route_id"> {
  is_reversal: number;
  count: StoredSum;
  amount: StoredSum;
  old_count: StoredSum;
  old_amount: StoredSum;
}

const sumKey = sql.raw("day, network, asset, route_id, is_reversal");

const rowKey = sql.raw("network, contract, channel_id, day, route_id, is_reversal");

/** Whether the sums contain a row of `channel_sums`, and take its changes. */
const isAdded = sql`((select is_whole from charge_sums_progress) = 1
  or (${rowKey}) <= (select ${rowKey} from charge_sums_progress))`;

/** The first day of a time on which a channel was charged. */
export async function findChargedDay(
  db: Kysely<LedgerSchema>,
  { from, before }: BookRange,
): Promise<number | undefined> {
  const row = await db
    .selectFrom("channel_sums")
    .select("day")
    .where("day", ">=", Math.floor(from / dayMs))
    .where("day", "<", Math.ceil(before / dayMs))
    .orderBy("day")
    .limit(1)
    .executeTakeFirst();
  return row?.day;
}
