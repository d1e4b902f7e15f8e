import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import { endedStates, type PaymentChangesTable, type PaymentSumsTable } from "../sums-schema.ts";

/** Rows read in one step, at most: a millisecond or two on the event loop. */
const maxAtOnce = 250;

/**
 * Adds to the sums: the next payments from before them, then the oldest changes. One step, in one
 * database transaction, so a crash loses nothing and counts nothing twice.
 *
 * The racers are other processes. One sums at a time, under a lock of its own, and no request waits
 * for that.
 *
 * @returns whether there may be more to add
 */
export async function sumPayments(ledger: LedgerContext, limit = maxAtOnce): Promise<boolean> {
  const { db, dialect } = ledger;
  const { first, summed_to, last_id } = await db
    .selectFrom("payment_sums_progress")
    .select((select) => [
      "summed_to",
      "last_id",
      select.selectFrom("payment_changes").select("id").limit(1).as("first"),
    ])
    .executeTakeFirstOrThrow();
  if (first === null && summed_to >= last_id) return false;
  return ledger.write(async (transaction) => {
    await dialect.lockKey(transaction, "coinslot:sums");
    const sums: Sums = new Map();
    const progress = await sumEarlier({ transaction, dialect, sums, limit });
    const changes = await takeChanges({ transaction, dialect, sums, limit, progress });
    await storeSums({ transaction, dialect, sums });
    return changes === limit || progress.summed_to < progress.last_id;
  }, forProcess);
}

type SumKey = Pick<PaymentSumsTable, "day" | "network" | "asset" | "route_id" | "state">;

/** Differences to add to the sums, by their keys. */
type Sums = Map<
  string,
  { key: SumKey; count: number; amount: bigint; deletedCount: number; deletedAmount: bigint }
>;

interface Summing {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  sums: Sums;
  limit: number;
}

interface Progress {
  summed_to: string;
  last_id: string;
}

/**
 * Sums the next payments from before the triggers, as they were then: as they are now, without
 * their changes. Both are read by one statement, so no writer needs a lock: whatever changes later
 * adds its change.
 */
async function sumEarlier({ transaction, dialect, sums, limit }: Summing): Promise<Progress> {
  const { summed_to, last_id } = await transaction
    .selectFrom("payment_sums_progress")
    .select(["summed_to", "last_id"])
    .executeTakeFirstOrThrow();
  if (summed_to >= last_id) return { summed_to, last_id };
  const last = await transaction
    .selectFrom("payments")
    .select("id")
    .where("id", ">", summed_to)
    .where("id", "<=", last_id)
    .orderBy("id")
    .limit(1)
    .offset(limit - 1)
    .executeTakeFirst();
  const to = last?.id ?? last_id;
  const { rows } = await sql<
    SumKey & { payment_id: string; value: PaymentChangesTable["value"]; step: number | null }
  >`
    select id as payment_id, created_at / 86400000 as day, network, asset, coalesce(route_id, 0) as route_id, state, value, null as step
    from payments where id > ${summed_to} and id <= ${to} and state in (${sql.join(endedStates)})
    union all
    select payment_id, day, network, asset, route_id, state, value, step
    from payment_changes where payment_id > ${summed_to} and payment_id <= ${to}
  `.execute(transaction);
  for (const row of rows) {
    // A deleted row is not among the payments any more, and was.
    const count = row.step === null || row.step === 0 ? 1 : -row.step;
    add(sums, row, { count, value: dialect.amount.decode(row.value) });
  }
  const unpaid = rows.filter(({ step, state }) => step === null && state !== "confirmed");
  await dialect.insertMany<LedgerSchema, "unpaid_payments">(
    transaction,
    "unpaid_payments",
    unpaid.flatMap(({ payment_id, state }) =>
      state === "confirmed" ? [] : [{ payment_id, state }],
    ),
    "ignore",
  );
  await transaction.updateTable("payment_sums_progress").set({ summed_to: to }).execute();
  return { summed_to: to, last_id };
}

/** Takes the oldest changes, but none of a payment from before the sums that they lack yet. */
async function takeChanges({
  transaction,
  dialect,
  sums,
  limit,
  progress,
}: Summing & { progress: Progress }): Promise<number> {
  const { summed_to, last_id } = progress;
  let oldest = transaction.selectFrom("payment_changes").select("id").orderBy("id").limit(limit);
  if (summed_to < last_id) {
    oldest = oldest.where((where) =>
      where.or([where("payment_id", "<=", summed_to), where("payment_id", ">", last_id)]),
    );
  }
  const rows = await transaction
    .deleteFrom("payment_changes")
    .where("id", "in", oldest)
    .returning(["day", "network", "asset", "route_id", "state", "value", "step"])
    .execute();
  for (const row of rows) {
    const value = dialect.amount.decode(row.value);
    add(sums, row, row.step === 0 ? { deletedCount: 1, value } : { count: row.step, value });
  }
  return rows.length;
}

function add(
  sums: Sums,
  { day, network, asset, route_id, state }: SumKey,
  { count = 0, deletedCount = 0, value }: { count?: number; deletedCount?: number; value: bigint },
): void {
  const name = `${day}/${network}/${asset}/${route_id}/${state}`;
  const key = { day, network, asset, route_id, state };
  const sum = sums.get(name) ?? { key, count: 0, amount: 0n, deletedCount: 0, deletedAmount: 0n };
  sum.count += count;
  sum.amount += BigInt(count) * value;
  sum.deletedCount += deletedCount;
  sum.deletedAmount += BigInt(deletedCount) * value;
  sums.set(name, sum);
}

/** Adds the differences to the rows. They are read before: the caller is alone. */
async function storeSums({ transaction, dialect, sums }: Omit<Summing, "limit">): Promise<void> {
  const { amount } = dialect;
  for (const { key, count, amount: sum, deletedCount, deletedAmount } of sums.values()) {
    const known = await transaction
      .selectFrom("payment_sums")
      .select(["count", "amount", "deleted_count", "deleted_amount"])
      .where("day", "=", key.day)
      .where("network", "=", key.network)
      .where("asset", "=", key.asset)
      .where("route_id", "=", key.route_id)
      .where("state", "=", key.state)
      .executeTakeFirst();
    const row = {
      ...key,
      count: (known?.count ?? 0) + count,
      amount: amount.encodeSum((known ? amount.decode(known.amount) : 0n) + sum),
      deleted_count: (known?.deleted_count ?? 0) + deletedCount,
      deleted_amount: amount.encodeSum(
        (known ? amount.decode(known.deleted_amount) : 0n) + deletedAmount,
      ),
    };
    await transaction
      .insertInto("payment_sums")
      .values(row)
      .onConflict((conflict) =>
        conflict.columns(["day", "network", "asset", "route_id", "state"]).doUpdateSet({
          count: row.count,
          amount: row.amount,
          deleted_count: row.deleted_count,
          deleted_amount: row.deleted_amount,
        }),
      )
      .execute();
  }
}
