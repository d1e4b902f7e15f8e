import type { StoredAmount } from "@coinslot/storage";
import { sql } from "kysely";
import { accounts } from "../ledger/books-schema.ts";
import type { LedgerContext } from "../ledger/ledger-context.ts";

interface Movement {
  debit: number;
  credit: number;
  amount: bigint;
  asset: string;
  route: number | null;
  payTo: number | null;
}

/** Money that payments, refunds and transactions have moved, by their id: texts, see `parse`. */
export type Moved = ReadonlyMap<string, string>;

type MovedKind = "payment" | "loss" | "refund" | "gas";

/**
 * Reads the money that has moved from the rows that the engine writes: payments that are confirmed,
 * refunds that another transaction has made, and gas of transactions in a block. Sales that are
 * lost after they were final, too. One statement, with one text for each row: histories read it
 * after each of their events, and most rows have not changed since.
 */
export async function readMoved({ db, dialect }: LedgerContext): Promise<Moved> {
  const bytes =
    dialect.engine === "sqlite"
      ? sql`'0x' || lower(hex(asset))`
      : sql`'0x' || encode(asset, 'hex')`;
  const { rows } = await sql<{ id: string; moved: string }>`
    select id, kind || '|' || asset || '|' || amount || '|' || coalesce(route, 0) || '|'
      || coalesce(pay_to, 0) || '|' || coalesce(refund_of, '') as moved
    from (
      select 'payment' as kind, id, asset, value as amount, route_id as route, pay_to_id as pay_to,
        refund_of from payments where state = 'confirmed'
      union all select 'payment', id, ${bytes}, value, route_id, pay_to_id, refund_of
        from archived_payments where state = 'confirmed'
      union all select 'loss', id, asset, value, route_id, pay_to_id, refund_of
        from payments join deep_reversals on payment_id = id
        where state in ('failed', 'expired') and closed_at is not null and refund_of is null
      union all select 'loss', id, ${bytes}, value, route_id, pay_to_id, refund_of
        from archived_payments join deep_reversals on payment_id = id
        where state in ('failed', 'expired') and closed_at is not null and refund_of is null
      union all select 'refund', id, asset, amount, null, null, null
        from refunds where state in ('confirmed', 'final') and operation_id is null
      union all select 'gas', id, '', gas_cost, null, null, null
        from transactions where state in ('settled', 'final') and gas_cost is not null
    ) as moved
  `.execute(db);
  return new Map(rows.map(({ id, moved }) => [id, moved]));
}

type Decode = LedgerContext["dialect"]["amount"]["decode"];

function parse(text: string, decode: Decode): Movement {
  const [kind = "", asset = "", amount = "", route, payTo, refundOf = ""] = text.split("|");
  const [debit, credit] = accountsOf(kind as MovedKind, refundOf !== "");
  return {
    ...{ debit, credit, amount: decode(amount as StoredAmount), asset },
    ...{ route: Number(route) || null, payTo: Number(payTo) || null },
  };
}

function accountsOf(kind: MovedKind, isRefund: boolean): [debit: number, credit: number] {
  switch (kind) {
    case "payment":
      return isRefund ? [accounts.refunds, accounts.float] : [accounts.wallet, accounts.income];
    case "loss":
      return [accounts.losses, accounts.income];
    case "refund":
      return [accounts.refunds, accounts.float];
    case "gas":
      return [accounts.gas, accounts.relayers];
  }
}

/** Entries or sums of a group: `debit credit asset route`, with their number and amount. */
export type Groups = Map<string, { count: number; amount: bigint }>;

/** The entries that the histories of a ledger must have. */
export function createBookModel({ dialect }: LedgerContext) {
  const decode: Decode = (stored) => dialect.amount.decode(stored);
  let opening: string[] = [];
  let changes: string[] = [];
  let groups: Groups = new Map();
  /** Accounts of all entries: debit and credit. */
  const met = new Set<string>();
  const post = (list: string[], id: string, each: Movement) => {
    met.add(`${each.debit} ${each.credit}`);
    list.push(textOf(id, each));
    addTo(groups, each, 1, each.amount);
  };
  return {
    met,
    /** Books begin on a ledger with these movements. Gas from before them has no price. */
    begin(moved: Moved) {
      opening = [];
      changes = [];
      groups = new Map();
      for (const [id, text] of moved) {
        const each = parse(text, decode);
        if (each.debit !== accounts.gas) post(opening, id, each);
      }
    },
    /**
     * Between two readings each movement has changed once, or not at all.
     *
     * @param isForgotten rows that are gone have moved their money all the same
     */
    change(before: Moved, after: Moved, { isForgotten = false }: { isForgotten?: boolean } = {}) {
      for (const [id, text] of before) {
        const now = after.get(id);
        if (now === text || (now === undefined && isForgotten)) continue;
        const each = parse(text, decode);
        post(changes, id, { ...each, debit: each.credit, credit: each.debit });
      }
      for (const [id, text] of after) {
        if (before.get(id) !== text) post(changes, id, parse(text, decode));
      }
    },
    changes: () => [...changes].sort(),
    all: () => [...opening, ...changes].sort(),
    groups: () => sorted(groups),
  };
}

/** The entries of a ledger, as texts. */
export async function readEntryTexts({ db, dialect }: LedgerContext): Promise<string[]> {
  const rows = await db.selectFrom("book_entries").selectAll().execute();
  return rows
    .map(({ debit, credit, source_id, amount, asset, route_id: route, pay_to_id: payTo }) =>
      textOf(source_id, {
        ...{ debit, credit, asset, route, payTo },
        amount: dialect.amount.decode(amount),
      }),
    )
    .sort();
}

/** Entries and sums of a ledger together. */
export async function readGroups({ db, dialect }: LedgerContext): Promise<Groups> {
  const groups: Groups = new Map();
  const entries = await db.selectFrom("book_entries").selectAll().execute();
  const sums = await db.selectFrom("book_sums").selectAll().execute();
  for (const { route_id, ...row } of entries) {
    addTo(groups, { ...row, route: route_id }, 1, dialect.amount.decode(row.amount));
  }
  for (const { route_id, count, amount, ...row } of sums) {
    addTo(groups, { ...row, route: route_id }, Number(count), dialect.amount.decode(amount));
  }
  return sorted(groups);
}

/** Empties a ledger between two lives. */
export async function clearLedger(ledger: LedgerContext): Promise<void> {
  const tables = [
    ...["payments", "archived_payments", "orders", "answers", "transactions", "broadcasts"],
    ...["refunds", "refundable_payments", "payment_changes", "payment_sums", "unpaid_payments"],
    ...["payers", "book_entries", "book_sums", "book_periods", "final_blocks", "deep_reversals"],
  ];
  await ledger.write(async (transaction) => {
    if (ledger.dialect.engine === "postgres") {
      // Deleted rows would make each scan of the next histories longer.
      await sql.raw(`truncate ${tables.join(", ")}`).execute(transaction);
    } else {
      for (const table of tables) await sql`delete from ${sql.table(table)}`.execute(transaction);
    }
    await sql`update book_progress set posted_to = '', last_id = ''`.execute(transaction);
    await sql`update payment_sums_progress set summed_to = '', last_id = ''`.execute(transaction);
  });
}

function textOf(id: string, { debit, credit, amount, asset, route, payTo }: Movement): string {
  return `${debit} ${credit} ${id} ${amount} ${asset} ${route} ${payTo}`;
}

function addTo(
  groups: Groups,
  { debit, credit, asset, route }: Pick<Movement, "debit" | "credit" | "asset" | "route">,
  count: number,
  amount: bigint,
): void {
  const key = `${debit} ${credit} ${asset} ${route ?? 0}`;
  const known = groups.get(key) ?? { count: 0, amount: 0n };
  groups.set(key, { count: known.count + count, amount: known.amount + amount });
}

const sorted = (groups: Groups): Groups =>
  new Map([...groups].sort(([one], [other]) => (one < other ? -1 : 1)));
