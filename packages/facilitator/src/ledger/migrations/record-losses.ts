import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import { type Telling, tellingStatements } from "./tell-of-payments.ts";

/**
 * Reorganisations deeper than final: the final blocks to compare with the chain, payments that were
 * taken back, and entries of lost ones. `../README.md`, "Deep reorganisations", gives the rules.
 *
 * Triggers post the entries, so the previous release, which goes on beside this step, posts them
 * too. It records no final blocks: what it has made final is not compared. The triggers run where
 * `closed_at` changes, which is no step of a payment that succeeds.
 */
export async function recordLosses<Schema>(
  transaction: Transaction<Schema>,
  dialect: Dialect,
): Promise<void> {
  const { types } = dialect;
  const { schema } = transaction;
  await schema
    .createTable("final_blocks")
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("number", types.integer, (column) => column.notNull())
    .addColumn("hash", types.text, (column) => column.notNull())
    .addColumn("left_at", types.timestampMs)
    .addPrimaryKeyConstraint("final_blocks_key", ["network", "number", "hash"])
    .execute();
  await sql
    .raw(
      "create index final_blocks_left on final_blocks (network, number) where left_at is not null",
    )
    .execute(transaction);
  await schema
    .createTable("deep_reversals")
    .addColumn("payment_id", types.text, (column) => column.primaryKey().notNull())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("block_number", types.integer, (column) => column.notNull())
    .addColumn("block_hash", types.text, (column) => column.notNull())
    .addColumn("transaction_hash", types.text)
    .addColumn("final_at", types.timestampMs, (column) => column.notNull())
    .addColumn("reversed_at", types.timestampMs, (column) => column.notNull())
    .execute();
  const isSqlite = dialect.engine === "sqlite";
  const statements = [
    ...(isSqlite ? sqliteTriggers : postgresTriggers),
    ...tellingStatements(dialect, tellings),
  ];
  for (const statement of statements) await sql.raw(statement).execute(transaction);
}

/** Numbers of the accounts, written out: a migration stays as it was. */
const [income, losses] = [2, 9];

/** A sale that has ended, and not by its payment. */
function isClosed(row: "old" | "new"): string {
  return `(${row}.closed_at is not null and ${row}.state in ('failed', 'expired') and ${row}.refund_of is null)`;
}

const wasFinal = "exists (select 1 from deep_reversals where payment_id = new.id)";
const isLost = `${isClosed("new")} and not ${isClosed("old")}`;
const isFound = `${isClosed("old")} and not ${isClosed("new")}`;

const columns = "posted_at, route_id, pay_to_id, debit, credit, source_id, amount, network, asset";

/** Posts the loss of a payment, or its reversal. */
function post(engine: Dialect["engine"], row: "old" | "new"): string {
  const [to, from] = row === "new" ? [losses, income] : [income, losses];
  return `insert into book_entries (${columns}) values (${postedAt(engine)}, ${row}.route_id, ${row}.pay_to_id, ${to}, ${from}, ${row}.id, ${row}.value, ${row}.network, ${row}.asset);`;
}

/** The database's clock, but never within a closed period. */
function postedAt(engine: Dialect["engine"]): string {
  const closedTo = "coalesce((select max(closed_to) from book_periods), 0)";
  return engine === "sqlite"
    ? `max(cast(round(unixepoch('subsec') * 1000) as integer), ${closedTo})`
    : `greatest((extract(epoch from clock_timestamp()) * 1000)::bigint, ${closedTo})`;
}

const sqliteTriggers = [
  `create trigger payments_lost after update of closed_at on payments when ${isLost} and ${wasFinal} begin ${post("sqlite", "new")} end`,
  `create trigger payments_found after update of closed_at on payments when ${isFound} and ${wasFinal} begin ${post("sqlite", "old")} end`,
];

// A trigger's condition has no select on PostgreSQL.
const postgresTriggers = [
  `create function coinslot_payment_lost() returns trigger language plpgsql as $body$ begin if not ${wasFinal} then return null; end if; if ${isLost} then ${post("postgres", "new")} end if; if ${isFound} then ${post("postgres", "old")} end if; return null; end $body$`,
  `create trigger payments_lost after update of closed_at on payments for each row when (${isClosed("old")} <> ${isClosed("new")}) execute function coinslot_payment_lost()`,
];

const tellings: readonly Telling[] = [
  {
    table: "payments",
    columns: "closed_at",
    condition: isLost,
    isWanted: wasFinal,
    type: "payment.lost",
  },
  {
    name: "refund_undone",
    table: "refunds",
    columns: "state",
    condition: "old.state = 'final' and new.state <> 'final'",
    type: "refund.reverted",
    facts: "old",
  },
];
