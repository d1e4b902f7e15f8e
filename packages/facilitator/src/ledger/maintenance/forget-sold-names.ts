import { forProcess, type LedgerContext } from "../ledger-context.ts";
import { refreshNamesMs } from "../payments/sold-names.ts";

/**
 * Deletes names that no payment refers to any more, after a walk over all payments created before
 * `before`. One step over the dictionary, in the order of its ids. The deleted names were last used
 * two refreshes before that time: a payment created since then has written their use.
 *
 * A name of a program that wrote no uses counts as used now.
 *
 * The racer is a process that sells the thing again. Before this step, it writes the use: the name
 * is locked or no longer old. After it, it finds no name, and adds it under a new id.
 *
 * @param options `keptNames`: names of the payments that the walk has kept, and of sums
 * @returns the id after which the next step goes on; `undefined` at the end
 */
export function forgetSoldNames(
  ledger: LedgerContext,
  options: { after: number; before: number; keptNames: ReadonlySet<number>; limit: number },
): Promise<number | undefined> {
  const { dialect, write, now } = ledger;
  const { after, before, keptNames, limit } = options;
  return write(async (transaction) => {
    const names = await transaction
      .selectFrom("sold_names")
      .select(["id", "used_at"])
      .where("id", ">", after)
      .orderBy("id")
      .limit(limit)
      .$call(dialect.forUpdateSkipLocked)
      .execute();
    const idsOf = (matches: (usedAt: number | null, id: number) => boolean) =>
      names.filter(({ id, used_at }) => matches(used_at, id)).map(({ id }) => id);
    const undated = idsOf((usedAt) => usedAt === null);
    if (undated.length > 0) {
      await transaction
        .updateTable("sold_names")
        .set({ used_at: now() })
        .where("id", "in", undated)
        .execute();
    }
    const unused = idsOf(
      (usedAt, id) => usedAt !== null && usedAt < before - 2 * refreshNamesMs && !keptNames.has(id),
    );
    if (unused.length > 0)
      await transaction.deleteFrom("sold_names").where("id", "in", unused).execute();
    return names.length < limit ? undefined : names.at(-1)?.id;
  }, forProcess);
}

/**
 * Ids of the routes that sums name: these outlive their payments. Those of single channels are read
 * only while the sums of charges lack some.
 */
export async function findSummedRoutes({ db }: LedgerContext): Promise<number[]> {
  const { is_whole } = await db
    .selectFrom("charge_sums_progress")
    .select("is_whole")
    .executeTakeFirstOrThrow();
  const named = db
    .selectFrom("payment_sums")
    .select("route_id")
    .union(db.selectFrom("payment_changes").select("route_id"))
    .union(db.selectFrom("book_sums").select("route_id"))
    .union(db.selectFrom("charge_sums").select("route_id"))
    .union(db.selectFrom("charge_changes").select("route_id"));
  const rows = await (is_whole === 1
    ? named
    : named.union(db.selectFrom("channel_sums").select("route_id"))
  ).execute();
  return rows.map(({ route_id }) => route_id);
}
