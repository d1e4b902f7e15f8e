import type { Network } from "@coinslot/protocol";
import type { StoredSum } from "@coinslot/storage";
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
  amount: StoredSum;
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
      amount: reads.dialect.amount.decode(amount),
    }));
    from = before * dayMs;
    if (before >= end) return;
  }
}

/** The sums of some days, by day, token, route and direction. */
export async function readChargesOf(
  { db, dialect }: LedgerReads,
  { day, before }: { day: number; before: number },
): Promise<DayOfCharges[]> {
  const rows = await db
    .selectFrom("channel_sums")
    .innerJoin("channel_terms", (join) =>
      join
        .onRef("channel_terms.network", "=", "channel_sums.network")
        .onRef("channel_terms.contract", "=", "channel_sums.contract")
        .onRef("channel_terms.channel_id", "=", "channel_sums.channel_id"),
    )
    .select(["channel_sums.day", "channel_sums.network", "channel_terms.token"])
    .select(["channel_sums.route_id", "channel_sums.is_reversal"])
    .select(({ ref }) => [
      sql<StoredSum>`${dialect.amount.sum(ref("channel_sums.amount"))}`.as("amount"),
      sql<StoredSum>`${dialect.amount.sum(ref("channel_sums.count"))}`.as("count"),
    ])
    .where("channel_sums.day", ">=", day)
    .where("channel_sums.day", "<", before)
    .groupBy(["channel_sums.day", "channel_sums.network", "channel_terms.token"])
    .groupBy(["channel_sums.route_id", "channel_sums.is_reversal"])
    .orderBy("channel_sums.day")
    .execute();
  return rows.map(({ token: asset, is_reversal, count, ...row }) => ({
    ...{ ...row, asset, count: Number(dialect.amount.decode(count)) },
    debit: is_reversal === 1 ? income : receivable,
    credit: is_reversal === 1 ? receivable : income,
  }));
}

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
