import type { Address } from "@coinslot/protocol";
import { sql } from "kysely";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import { readCommonTime } from "../queries/common-time.ts";

/** A row stays for so long after the end of its window of free runs: other clocks may differ. */
const unusedMs = 86_400_000;

/**
 * Deletes payers without a payment in `payments`, and without a free run that still counts. One
 * step over all payers, in the order of their addresses. The next reservation inserts the row
 * again.
 *
 * The row is the lock of its payer, and a reservation takes it in two statements: it inserts the
 * row or leaves it, then locks it. Deleted in between, it would be no lock. So a step excludes all
 * writers of the table, of any release. Where one is under way, the step deletes nothing and waits
 * for none, since later reservations would wait behind it. A later walk looks at its payers again.
 *
 * @param after the payer after which the step goes on; empty: from the beginning
 * @returns the payer after which the next step goes on; `undefined` at the end
 */
export async function forgetPayers(
  ledger: LedgerContext,
  { after, limit }: { after: string; limit: number },
): Promise<string | undefined> {
  const { db, dialect, write, releaseLimit } = ledger;
  const before = (await readCommonTime(ledger)) - releaseLimit.windowMs - unusedMs;
  const next = await selectPayers({ db }, { after, limit }).execute();
  const isUnused = (row: (typeof next)[number]) =>
    row.window_started_at < before && row.payment === null;
  if (next.some(isUnused)) {
    await write(async (transaction) => {
      if (!(await dialect.tryLockTable(transaction, "payers"))) return;
      // Again: a payer may have bought meanwhile.
      const locked = await selectPayers({ db: transaction }, { after, limit }).execute();
      const unused = locked.filter(isUnused).map(({ payer }) => payer);
      if (unused.length === 0) return;
      await transaction.deleteFrom("payers").where("payer", "in", dialect.among(unused)).execute();
    }, forProcess);
  }
  return next.length < limit ? undefined : next.at(-1)?.payer;
}

/**
 * The next payers, each with one of its payments. It is in the order of the payers' index: without
 * that, PostgreSQL without statistics expects to find one soon in the table itself.
 */
function selectPayers(
  { db }: Pick<LedgerContext, "db">,
  { after, limit }: { after: string; limit: number },
) {
  return db
    .selectFrom("payers")
    .select(["payers.payer", "payers.window_started_at"])
    .select(({ selectFrom }) =>
      selectFrom("payments")
        .select("payments.id")
        .whereRef("payments.payer", "=", "payers.payer")
        .orderBy("payments.payer")
        .orderBy("payments.state")
        .orderBy("payments.block_number")
        .limit(1)
        .as("payment"),
    )
    .where("payers.payer", ">", sql<Address>`${after}`)
    .orderBy("payers.payer")
    .limit(limit);
}
