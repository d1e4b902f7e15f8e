import type { Dialect } from "@coinslot/storage";
import { type Selectable, sql, type Transaction } from "kysely";
import type {
  ChargeChangesTable,
  ChargeSumsProgressTable,
  ChargeSumsTable,
} from "../channel-books-schema.ts";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";

/** Rows read in one step, at most: a millisecond or two on the event loop. */
const maxAtOnce = 250;

/**
 * Adds charges to the sums of their days: the next ones from before the sums, then the oldest
 * changes. A step is one database transaction: a crash loses nothing, and counts nothing twice.
 *
 * The racers are other processes. One adds at a time, under a lock of its own, and no request waits
 * for that.
 *
 * @returns whether there may be more to add
 */
export async function foldCharges(ledger: LedgerContext, limit = maxAtOnce): Promise<boolean> {
  const { db, dialect } = ledger;
  const { first, is_whole } = await db
    .selectFrom("charge_sums_progress")
    .select((select) => [
      "is_whole",
      select.selectFrom("charge_changes").select("id").limit(1).as("first"),
    ])
    .executeTakeFirstOrThrow();
  if (first === null && is_whole === 1) return false;
  return ledger.write(async (transaction) => {
    await dialect.lockKey(transaction, "coinslot:charge-sums");
    const sums: Sums = new Map();
    const isWhole = await foldEarlier({ transaction, dialect, sums, limit });
    const changes = await takeChanges({ transaction, dialect, sums, limit, isWhole });
    await storeSums({ transaction, dialect, sums });
    return changes === limit || !isWhole;
  }, forProcess);
}

type SumKey = Pick<ChargeSumsTable, "day" | "network" | "asset" | "route_id" | "is_reversal">;

/** Differences to add to the sums, by their keys. */
type Sums = Map<string, { sumKey: SumKey; count: bigint; amount: bigint }>;

interface Folding {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  sums: Sums;
  limit: number;
}

/** A key of `channel_sums`. */
type Position = Omit<Selectable<ChargeSumsProgressTable>, "is_whole">;

type ChangeRow = SumKey & Pick<ChargeChangesTable, "count" | "amount" | "old_count" | "old_amount">;

/** Columns of the key of `channel_sums`, in its order. */
const key = sql.raw("network, contract, channel_id, day, route_id, is_reversal");

/**
 * Adds the next rows from before the triggers, as they were then: as they are now, without their
 * changes. Both are read by one statement, so no writer needs a lock: whatever is charged later
 * adds its change. A row that is newer than the triggers adds nothing.
 *
 * @returns whether the sums contain every row
 */
async function foldEarlier({ transaction, dialect, sums, limit }: Folding): Promise<boolean> {
  const progress = await transaction
    .selectFrom("charge_sums_progress")
    .selectAll()
    .executeTakeFirstOrThrow();
  if (progress.is_whole === 1) return true;
  const { network, contract, channel_id, day, route_id, is_reversal } = progress;
  const after = sql`(${network}, ${contract}, ${channel_id}, ${day}, ${route_id}, ${is_reversal})`;
  const none = sql`${dialect.amount.encode(0n)}`;
  const { rows } = await sql<ChangeRow & Position & { part: "page" | "changes" | "last" }>`
    with page as (
      select ${key}, count, amount from channel_sums
      where (${key}) > ${after} order by ${key} limit ${sql.lit(limit)}
    ), last as (
      select ${key} from page
      order by network desc, contract desc, channel_id desc, day desc, route_id desc,
        is_reversal desc
      limit 1
    )
    select 'page' as part, ${key}, count, amount, ${none} as old_count, ${none} as old_amount,
      (select token from channel_terms where channel_terms.network = page.network
        and channel_terms.contract = page.contract
        and channel_terms.channel_id = page.channel_id) as asset
    from page
    union all
    select 'changes', ${key}, count, amount, old_count, old_amount, asset from charge_changes
    where (${key}) > ${after}
      and ((select count(*) from page) < ${sql.lit(limit)} or (${key}) <= (select ${key} from last))
    union all
    select 'last', ${key}, ${none}, ${none}, ${none}, ${none}, '' from last
  `.execute(transaction);
  let last: Position | undefined;
  let pageLength = 0;
  for (const { part, ...row } of rows) {
    if (part === "last") last = positionOf(row);
    else add({ sums, dialect, row, sign: part === "page" ? 1n : -1n });
    if (part === "page") pageLength += 1;
  }
  const isWhole = pageLength < limit;
  await transaction
    .updateTable("charge_sums_progress")
    .set({ ...last, is_whole: Number(isWhole) })
    .execute();
  return isWhole;
}

/** Takes the oldest changes, but none of a row that the sums do not contain yet. */
async function takeChanges({
  transaction,
  dialect,
  sums,
  limit,
  isWhole,
}: Folding & { isWhole: boolean }): Promise<number> {
  let oldest = transaction.selectFrom("charge_changes").select("id").orderBy("id").limit(limit);
  if (!isWhole) {
    oldest = oldest.where(sql<boolean>`(${key}) <= (select ${key} from charge_sums_progress)`);
  }
  const rows = await transaction
    .deleteFrom("charge_changes")
    .where("id", "in", oldest)
    .returning(["day", "network", "asset", "route_id", "is_reversal"])
    .returning(["count", "amount", "old_count", "old_amount"])
    .execute();
  for (const row of rows) add({ sums, dialect, row, sign: 1n });
  return rows.length;
}

function positionOf(row: Position): Position {
  const { network, contract, channel_id, day, route_id, is_reversal } = row;
  return { network, contract, channel_id, day, route_id, is_reversal };
}

function add(options: { sums: Sums; dialect: Dialect; row: ChangeRow; sign: bigint }): void {
  const { sums, dialect, row, sign } = options;
  const { decode } = dialect.amount;
  const { day, network, asset, route_id, is_reversal } = row;
  const name = `${day}/${network}/${asset}/${route_id}/${is_reversal}`;
  const sumKey = { day, network, asset, route_id, is_reversal };
  const sum = sums.get(name) ?? { sumKey, count: 0n, amount: 0n };
  sum.count += sign * (decode(row.count) - decode(row.old_count));
  sum.amount += sign * (decode(row.amount) - decode(row.old_amount));
  sums.set(name, sum);
}

/** Adds the differences to the rows. They are read before: the caller is alone. */
async function storeSums({ transaction, dialect, sums }: Omit<Folding, "limit">): Promise<void> {
  const { decode, encodeSum } = dialect.amount;
  for (const { sumKey, count, amount } of sums.values()) {
    if (count === 0n && amount === 0n) continue;
    const known = await transaction
      .selectFrom("charge_sums")
      .select(["count", "amount"])
      .where("day", "=", sumKey.day)
      .where("network", "=", sumKey.network)
      .where("asset", "=", sumKey.asset)
      .where("route_id", "=", sumKey.route_id)
      .where("is_reversal", "=", sumKey.is_reversal)
      .executeTakeFirst();
    const row = {
      count: encodeSum((known ? decode(known.count) : 0n) + count),
      amount: encodeSum((known ? decode(known.amount) : 0n) + amount),
    };
    await transaction
      .insertInto("charge_sums")
      .values({ ...sumKey, ...row })
      .onConflict((conflict) =>
        conflict.columns(["day", "network", "asset", "route_id", "is_reversal"]).doUpdateSet(row),
      )
      .execute();
  }
}
