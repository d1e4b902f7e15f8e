import type { Address, Hex } from "@coinslot/protocol";
import { type Selectable, sql } from "kysely";
import type { BookEntriesTable } from "../ledger/books-schema.ts";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { inSnapshot } from "../ledger/ledger-reads.ts";
import { accountOf, type BookEntry, type BookRange, kindOf } from "./book-entry.ts";
import { createNames } from "./name-sold.ts";

/** Rows read at once: memory does not grow with the books. */
const pageRows = 1_000;

/** The columns of an entry. SQLite reads `*` in twice the time. */
export const entryColumns = [
  "id",
  "posted_at",
  "route_id",
  "pay_to_id",
  "debit",
  "credit",
  "source_id",
  "amount",
  "network",
  "asset",
  "block_number",
] as const;

type EntryRow = Selectable<BookEntriesTable>;

/**
 * The entries of a time, in the order of their times, page by page. Each page is of one moment, and
 * begins behind the last row of the one before.
 */
export async function* readEntries(
  reads: LedgerReads,
  range: BookRange,
  limit = pageRows,
): AsyncGenerator<BookEntry[], void, void> {
  const names = createNames(reads);
  let after: Pick<EntryRow, "posted_at" | "id"> = { posted_at: range.from, id: 0 };
  for (;;) {
    const last = after;
    const { rows, sources } = await inSnapshot(reads, async (snapshot) => {
      const page = await selectEntries(snapshot, { after: last, before: range.before, limit });
      return { rows: page, sources: await readSources(snapshot, page) };
    });
    await names.learn(rows.flatMap(({ route_id, pay_to_id }) => [route_id, pay_to_id]));
    if (rows.length > 0) {
      yield rows.map((row) => {
        // Members one by one: spreading them takes half of an export's time.
        const source = sources.get(row.source_id) ?? noSource;
        const entry: BookEntry = toEntry(row, reads);
        entry.route = names.nameOf(row.route_id);
        entry.payTo = names.nameOf(row.pay_to_id);
        entry.payer = source.payer;
        entry.transaction = source.transaction;
        entry.isFinal = isFinalIn(row, source);
        return entry;
      });
    }
    const next = rows.at(-1);
    if (next === undefined || rows.length < limit) return;
    after = next;
  }
}

/** Keyset page by time and id. */
export function selectEntries(
  { db }: LedgerReads,
  wish: { after: Pick<EntryRow, "posted_at" | "id">; before: number; limit: number },
): Promise<EntryRow[]> {
  const { after, before, limit } = wish;
  return db
    .selectFrom("book_entries")
    .select(entryColumns)
    .where(sql<boolean>`(posted_at, id) > (${after.posted_at}, ${after.id})`)
    .where("posted_at", "<", before)
    .orderBy("posted_at")
    .orderBy("id")
    .limit(limit)
    .execute();
}

/** An entry by its row alone. */
function toEntry(row: EntryRow, { dialect }: Pick<LedgerReads, "dialect">): BookEntry {
  const { kind, isReversal } = kindOf(row.debit, row.credit);
  return {
    id: row.id,
    postedAt: row.posted_at,
    sourceId: row.source_id,
    kind,
    isReversal,
    debit: accountOf(row.debit),
    credit: accountOf(row.credit),
    amount: dialect.amount.decode(row.amount),
    network: row.network,
    asset: row.asset === "" ? undefined : `0x${row.asset.slice(2)}`,
    route: undefined,
    payTo: undefined,
    payer: undefined,
    transaction: undefined,
    isFinal: undefined,
  };
}

interface Source extends Pick<BookEntry, "payer" | "transaction" | "isFinal"> {
  /** Of a channel: the block up to which its state on the chain is final. */
  finalBlock?: number;
}
const noSource: Source = { payer: undefined, transaction: undefined, isFinal: undefined };

function isFinalIn({ block_number }: EntryRow, { isFinal, finalBlock }: Source) {
  if (block_number === null || finalBlock === undefined) return isFinal;
  return block_number <= finalBlock;
}

/** Payments, archived payments and transactions of some entries, by their ids. */
async function readSources(
  { db, dialect }: LedgerReads,
  rows: readonly EntryRow[],
): Promise<Map<string, Source>> {
  const found = new Map<string, Source>();
  const missing = () => [
    ...new Set(rows.flatMap(({ source_id: id }) => (found.has(id) ? [] : [id]))),
  ];
  const add = (row: {
    id: string;
    payer: Address | Uint8Array | null;
    transaction_hash: Hex | Uint8Array | null;
    final_at: number | null;
  }) =>
    found.set(row.id, {
      payer: hexOf(row.payer),
      transaction: hexOf(row.transaction_hash),
      isFinal: row.final_at !== null,
    });
  for (const table of ["payments", "archived_payments", "refunds"] as const) {
    const wanted = missing();
    if (wanted.length === 0) return found;
    const query = db
      .selectFrom(table)
      .select(["id", "payer", "transaction_hash", "final_at"])
      .where("id", "in", dialect.among(wanted));
    for (const row of await query.execute()) add(row);
  }
  const ids = missing();
  if (ids.length === 0) return found;
  const sent = await db
    .selectFrom("transactions")
    .select(["id", "hash", "state"])
    .where("id", "in", dialect.among(ids))
    .execute();
  for (const { id, hash, state } of sent) {
    found.set(id, {
      payer: undefined,
      transaction: hash ?? undefined,
      isFinal: state === "final",
    });
  }
  await readChannelSources({ db, dialect }, missing(), found);
  return found;
}

/** Channels and payouts. An entry of a channel has the block at which it was seen. */
async function readChannelSources(
  { db, dialect }: LedgerReads,
  ids: readonly string[],
  found: Map<string, Source>,
): Promise<void> {
  if (ids.length === 0) return;
  const channels = await db
    .selectFrom("channel_terms")
    .leftJoin("channel_states", (join) =>
      join
        .onRef("channel_states.network", "=", "channel_terms.network")
        .onRef("channel_states.contract", "=", "channel_terms.contract")
        .onRef("channel_states.channel_id", "=", "channel_terms.channel_id"),
    )
    .select(["channel_terms.channel_id", "channel_terms.payer"])
    .select(["channel_states.final_number", "channel_states.is_moving"])
    .where(({ ref }) => sql<boolean>`${ref("channel_terms.channel_id")} in ${dialect.among(ids)}`)
    .execute();
  for (const { channel_id, payer, final_number, is_moving } of channels) {
    const finalBlock = is_moving === 0 ? Number.POSITIVE_INFINITY : (final_number ?? -1);
    found.set(channel_id, { payer, transaction: undefined, isFinal: undefined, finalBlock });
  }
  const payouts = await db
    .selectFrom("channel_payouts")
    .select(["id", "transaction_hash"])
    .where("id", "in", dialect.among(ids))
    .execute();
  for (const { id, transaction_hash: transaction } of payouts) {
    found.set(id, { payer: undefined, transaction, isFinal: true });
  }
}

function hexOf(value: Address | Uint8Array | null): Hex | undefined {
  if (value === null) return undefined;
  return typeof value === "string" ? value : `0x${Buffer.from(value).toString("hex")}`;
}
