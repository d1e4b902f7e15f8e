import { createHash } from "node:crypto";
import type { Dialect } from "@coinslot/storage";
import { type Selectable, type SqlBool, sql, type Transaction } from "kysely";
import { accounts, type BookEntriesTable, type BookSumsTable } from "../books-schema.ts";
import { type EntrySource, findEntryFault } from "../entry-fault.ts";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";

const dayMs = 86_400_000;

/** Accounts of channels. A channel's row says what all of its entries must add up to. */
const { receivable, claimed, locked, escrow } = accounts;
const ofChannels = sql.join([receivable, claimed, locked, escrow].map((each) => sql.lit(each)));

/** A payment, or a refund that another transaction has made, which is about to be forgotten. */
export interface ClosedSource extends EntrySource {
  id: string;
  /** The payment that it is deleted with: all or none of these are. */
  owner: string;
}

/** A database transaction of retention. */
export interface Closing {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
}

/**
 * Excludes other processes that close entries, until the transaction ends. The first statement of
 * it: whoever holds the key waits for no row of another.
 */
export function lockSums({ transaction, dialect }: Closing): Promise<void> {
  return dialect.lockKey(transaction, "coinslot:book-sums");
}

/**
 * Replaces the entries of some sources by their sums, in the transaction that deletes the sources.
 * An owner of which one source does not agree with its entries keeps them all, and must be kept: it
 * is the evidence.
 *
 * @returns the owners whose entries are closed
 */
export async function closeEntriesOf(
  closing: Closing,
  sources: readonly ClosedSource[],
): Promise<Set<string>> {
  const { transaction, dialect } = closing;
  const owners = new Set(sources.map(({ owner }) => owner));
  if (owners.size === 0) return owners;
  const rows = await transaction
    .selectFrom("book_entries")
    .selectAll()
    .where("source_id", "in", dialect.among(sources.map(({ id }) => id)))
    .execute();
  const bySource = new Map<string, Entry[]>();
  for (const row of rows) {
    const known = bySource.get(row.source_id);
    if (known) known.push(row);
    else bySource.set(row.source_id, [row]);
  }
  for (const source of sources) {
    const entries = (bySource.get(source.id) ?? []).map((row) => ({
      ...row,
      amount: dialect.amount.decode(row.amount),
    }));
    if (findEntryFault(source, entries) !== undefined) owners.delete(source.owner);
  }
  const closed = sources.filter(({ owner }) => owners.has(owner));
  await close(
    closing,
    closed.flatMap(({ id }) => bySource.get(id) ?? []),
  );
  return owners;
}

/**
 * Closes old entries whose source is in no table: gas of pruned transactions, and payments that the
 * previous release has deleted. Those of channels stay. One step of a walk in the order of posting.
 *
 * No lock on the sources is needed: one that has gone does not come back, and a payment is archived
 * in one database transaction.
 */
export function closeOrphans(
  { write, dialect }: Pick<LedgerContext, "write" | "dialect">,
  { after, before, limit }: { after: EntryPlace; before: number; limit: number },
): Promise<EntryPlace | undefined> {
  return write(async (transaction) => {
    const closing = { transaction, dialect };
    await lockSums(closing);
    const next = await transaction
      .selectFrom("book_entries")
      .selectAll()
      .select((entry) =>
        entry
          .case()
          .when(
            sql<SqlBool>`exists (select 1 from payments where payments.id = source_id)
              or exists (select 1 from archived_payments where archived_payments.id = source_id)
              or exists (select 1 from refunds where refunds.id = source_id)
              or exists (select 1 from transactions where transactions.id = source_id)
              or debit in (${ofChannels}) or credit in (${ofChannels})`,
          )
          .then(1)
          .else(0)
          .end()
          .as("has_source"),
      )
      .where(sql<SqlBool>`(posted_at, id) > (${after.posted_at}, ${after.id})`)
      .where("posted_at", "<", before)
      .orderBy("posted_at")
      .orderBy("id")
      .limit(limit)
      .execute();
    await close(
      closing,
      next.filter(({ has_source }) => Number(has_source) === 0),
    );
    const last = next.at(-1);
    return last && next.length === limit ? { posted_at: last.posted_at, id: last.id } : undefined;
  }, forProcess);
}

/** An entry's place in the order of posting. */
export type EntryPlace = Pick<Entry, "posted_at" | "id">;

type Entry = Selectable<BookEntriesTable>;
type SumKey = Pick<BookSumsTable, "day" | "network" | "asset" | "route_id" | "debit" | "credit">;

/** Adds entries to the sums of their days, and deletes them. */
async function close({ transaction, dialect }: Closing, rows: readonly Entry[]): Promise<void> {
  if (rows.length === 0) return;
  const groups = new Map<string, { key: SumKey; entries: Entry[] }>();
  const inOrder = [...rows].sort((a, b) => a.posted_at - b.posted_at || a.id - b.id);
  for (const row of inOrder) {
    const { posted_at, network, asset, route_id, debit, credit } = row;
    const day = Math.floor(posted_at / dayMs);
    const key = { day, network, asset, route_id: route_id ?? 0, debit, credit };
    const name = JSON.stringify(key);
    const group = groups.get(name) ?? { key, entries: [] };
    group.entries.push(row);
    groups.set(name, group);
  }
  for (const { key, entries } of groups.values()) await add({ transaction, dialect }, key, entries);
  const sources = [...new Set(rows.map(({ source_id }) => source_id))];
  const ids = rows.map(({ id }) => id);
  await transaction
    .deleteFrom("book_entries")
    .where("source_id", "in", dialect.among(sources))
    .where("id", "in", ids)
    .execute();
}

async function add(
  { transaction, dialect }: Closing,
  key: SumKey,
  entries: readonly Entry[],
): Promise<void> {
  const { amount } = dialect;
  const known = await transaction
    .selectFrom("book_sums")
    .select(["count", "amount", "digest"])
    .where("day", "=", key.day)
    .where("network", "=", key.network)
    .where("asset", "=", key.asset)
    .where("route_id", "=", key.route_id)
    .where("debit", "=", key.debit)
    .where("credit", "=", key.credit)
    .executeTakeFirst();
  let sum = known ? amount.decode(known.amount) : 0n;
  let digest = known?.digest ?? "";
  for (const entry of entries) {
    const value = amount.decode(entry.amount);
    sum += value;
    const { posted_at, id, source_id, pay_to_id } = entry;
    const text = `${digest}|${posted_at}|${id}|${source_id}|${pay_to_id ?? 0}|${value}`;
    digest = createHash("sha256").update(text).digest("hex");
  }
  const row = {
    count: Number(known?.count ?? 0) + entries.length,
    amount: amount.encodeSum(sum),
    digest,
  };
  await transaction
    .insertInto("book_sums")
    .values({ ...key, ...row })
    .onConflict((conflict) =>
      conflict.columns(["day", "network", "asset", "route_id", "debit", "credit"]).doUpdateSet(row),
    )
    .execute();
}
