import type { Network } from "@coinslot/protocol";
import type { StoredSum } from "@coinslot/storage";
import { sql } from "kysely";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { inSnapshot } from "../ledger/ledger-reads.ts";
import { accountOf, type BookRange, type BookSum, kindOf } from "./book-entry.ts";
import { createNames } from "./name-sold.ts";
import { findChargedDay, readChargesOf } from "./read-charges.ts";

const dayMs = 86_400_000;
/** Time summed by one statement: a tenth of a second at ten million entries a month. */
const stepMs = 3_600_000;

interface SumRow {
  network: Network;
  asset: string;
  route_id: number | null;
  debit: number;
  credit: number;
  count: number;
  amount: StoredSum;
}

/**
 * The sums of a time, day by day: of entries, of those that retention has summed before, and of the
 * charges of channels, which have no entries. Memory
 * holds one day's groups. Days without entries are passed over.
 *
 * A day that is not in the past may get more entries meanwhile.
 */
export async function* sumEntries(
  reads: LedgerReads,
  range: BookRange,
): AsyncGenerator<BookSum[], void, void> {
  const names = createNames(reads);
  for await (const { day, sums } of sumDays(reads, range)) {
    await names.learn(sums.map(({ route_id }) => route_id));
    yield sums.map(({ route_id, debit, credit, network, asset, count, sum }) => ({
      day,
      ...kindOf(debit, credit),
      debit: accountOf(debit),
      credit: accountOf(credit),
      network,
      asset: asset === "" ? undefined : `0x${asset.slice(2)}`,
      route: names.nameOf(route_id),
      count,
      amount: sum,
    }));
  }
}

/** The same by the ids of routes. */
export async function* sumDays(
  reads: LedgerReads,
  range: BookRange,
): AsyncGenerator<{ day: number; sums: DaySum[] }, void, void> {
  for (let from = range.from; from < range.before; ) {
    const start = await findNext(reads, { ...range, from });
    if (start === undefined) return;
    const day = Math.floor(start / dayMs);
    const before = Math.min(range.before, (day + 1) * dayMs);
    yield {
      day,
      sums: await sumDay(reads, { day, from: Math.max(from, day * dayMs), before }),
    };
    from = (day + 1) * dayMs;
  }
}

/** Time of the next entry or day that is summed. */
async function findNext(
  { db }: LedgerReads,
  { from, before }: BookRange,
): Promise<number | undefined> {
  const entry = await db
    .selectFrom("book_entries")
    .select("posted_at")
    .where("posted_at", ">=", from)
    .where("posted_at", "<", before)
    .orderBy("posted_at")
    .limit(1)
    .executeTakeFirst();
  const sum = await db
    .selectFrom("book_sums")
    .select("day")
    .where("day", ">=", Math.floor(from / dayMs))
    .where("day", "<", Math.ceil(before / dayMs))
    .orderBy("day")
    .limit(1)
    .executeTakeFirst();
  const chargedDay = await findChargedDay(db, { from, before });
  const days = [sum?.day, chargedDay].filter((day) => day !== undefined);
  const times = [entry?.posted_at, ...days.map((day) => Math.max(from, day * dayMs))];
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

type DaySum = Omit<SumRow, "amount"> & { route_id: number; sum: bigint };

/** Groups of one day, in the order of their keys. */
function sumDay(
  reads: LedgerReads,
  { day, from, before }: BookRange & { day: number },
): Promise<DaySum[]> {
  return inSnapshot(reads, async ({ db, dialect }) => {
    const { decode } = dialect.amount;
    const sums = new Map<string, DaySum>();
    const add = ({ amount, ...row }: Omit<SumRow, "amount"> & { amount: bigint }) => {
      const key = { ...row, route_id: row.route_id ?? 0 };
      const { network, asset, route_id, debit, credit } = key;
      const name = `${network}/${asset}/${route_id}/${debit}/${credit}`;
      const known = sums.get(name);
      sums.set(name, {
        ...key,
        count: Number(row.count) + (known?.count ?? 0),
        sum: amount + (known?.sum ?? 0n),
      });
    };
    const summed = await db.selectFrom("book_sums").selectAll().where("day", "=", day).execute();
    for (const row of summed) add({ ...row, amount: decode(row.amount) });
    for (const row of await readChargesOf({ db, dialect }, { day, before: day + 1 })) add(row);
    for (let time = from; time < before; time += stepMs) {
      const rows = await db
        .selectFrom("book_entries")
        .select(["network", "asset", "route_id", "debit", "credit"])
        .select(sql<number>`count(*)`.as("count"))
        .select((row) => sql<StoredSum>`${dialect.amount.sum(row.ref("amount"))}`.as("amount"))
        .where("posted_at", ">=", time)
        .where("posted_at", "<", Math.min(before, time + stepMs))
        .groupBy(["network", "asset", "route_id", "debit", "credit"])
        .execute();
      for (const row of rows) add({ ...row, amount: decode(row.amount) });
    }
    return [...sums].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, sum]) => sum);
  });
}
