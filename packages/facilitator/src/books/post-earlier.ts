import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import { accounts } from "../ledger/books-schema.ts";
import { forProcess, type LedgerContext } from "../ledger/ledger-context.ts";
import type { LedgerSchema } from "../ledger/schema.ts";

/** Rows read in one step, at most: a millisecond or two on the event loop. */
const maxAtOnce = 250;

/**
 * Posts the next payments from before the books, as they were confirmed then. One step, in one
 * database transaction with its progress, so a crash posts nothing twice.
 *
 * The racers are other processes: one posts at a time, under a lock of its own. A payment may
 * change meanwhile. One statement reads the payments and their entries, so whatever changes later
 * adds its entry to those read.
 *
 * @returns whether there may be more to post
 */
export async function postEarlier(ledger: LedgerContext, limit = maxAtOnce): Promise<boolean> {
  const { dialect } = ledger;
  if (!(await isUnfinished(ledger.db))) return false;
  return ledger.write(async (transaction) => {
    await dialect.lockKey(transaction, "coinslot:books");
    const { posted_to, last_id } = await transaction
      .selectFrom("book_progress")
      .selectAll()
      .executeTakeFirstOrThrow();
    if (posted_to >= last_id) return false;
    const to = await findEnd(transaction, { posted_to, last_id, limit });
    await postBetween(transaction, { dialect, from: posted_to, to });
    await transaction.updateTable("book_progress").set({ posted_to: to }).execute();
    return to < last_id;
  }, forProcess);
}

/** True while payments from before the books are not posted. */
async function isUnfinished(db: LedgerContext["db"]): Promise<boolean> {
  const { posted_to, last_id } = await db
    .selectFrom("book_progress")
    .selectAll()
    .executeTakeFirstOrThrow();
  return posted_to < last_id;
}

/** The last id of the next step, over the payments that are archived, and those that are not. */
async function findEnd(
  transaction: Transaction<LedgerSchema>,
  { posted_to, last_id, limit }: { posted_to: string; last_id: string; limit: number },
): Promise<string> {
  const ends: string[] = [];
  for (const table of ["payments", "archived_payments"] as const) {
    const last = await transaction
      .selectFrom(table)
      .select("id")
      .where("id", ">", posted_to)
      .where("id", "<=", last_id)
      .orderBy("id")
      .limit(1)
      .offset(limit - 1)
      .executeTakeFirst();
    if (last) ends.push(last.id);
  }
  return ends.sort()[0] ?? last_id;
}

/**
 * Posts the payments that were confirmed when the books began: confirmed ones without an entry, and
 * those whose first entry takes one back. The latter may be sold anew since, so that entry
 * describes them. One statement: a payment may be archived, or change, between two.
 */
async function postBetween(
  transaction: Transaction<LedgerSchema>,
  { dialect, from, to }: { dialect: Dialect; from: string; to: string },
): Promise<void> {
  const hexOfAsset =
    dialect.engine === "sqlite" ? sql`lower(hex(asset))` : sql`encode(asset, 'hex')`;
  const { wallet, income, refunds, float } = accounts;
  const described = sql.raw(`
    value, route_id, pay_to_id, coalesce(confirmed_at, created_at),
    case when refund_of is null then ${wallet} else ${refunds} end,
    case when refund_of is null then ${income} else ${float} end
  `);
  const isEarlier = sql`id > ${from} and id <= ${to} and state = 'confirmed' and not exists (
    select 1 from book_entries where source_id = earlier.id
  )`;
  await sql`
    insert into book_entries (source_id, network, asset, amount, route_id, pay_to_id, posted_at, debit, credit)
    select id, network, asset, ${described}
    from payments as earlier where ${isEarlier}
    union all
    select id, network, '0x' || ${hexOfAsset}, ${described}
    from archived_payments as earlier where ${isEarlier}
    union all
    select source_id, network, asset, amount, route_id, pay_to_id, posted_at,
      credit, debit
    from book_entries as taken where source_id in (
        select id from payments where id > ${from} and id <= ${to}
        union all select id from archived_payments where id > ${from} and id <= ${to}
      ) and debit in (${income}, ${float}) and not exists (
        select 1 from book_entries as other
        where other.source_id = taken.source_id and other.id < taken.id
      )
  `.execute(transaction);
}
