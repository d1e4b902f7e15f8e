import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";

/** Written out, for a migration stays as it was when the states of the program change. */
const ended = "('confirmed', 'failed', 'expired', 'released')";
const unpaid = "('failed', 'expired', 'released')";
const closed = "('final', 'void')";

/**
 * Refunds: the business row, and the columns that tie it to payments. README.md, "Refunds", gives
 * the states.
 *
 * `refund_of` marks a row of `payments` that is a refund's operation: its payer is the float. Such
 * a row is in no sum and no list of sales: the triggers of the sums pass it over. The previous
 * release goes on beside this step. It settles a refund's operation as any payment. It serves no
 * payment whose refund has begun: that has a `delivered_at` as well.
 */
export async function recordRefunds<Schema>(
  transaction: Transaction<Schema>,
  { engine, types }: Dialect,
): Promise<void> {
  const { schema } = transaction;
  const alterPayments = schema.alterTable("payments");
  await alterPayments.addColumn("refund_of", types.text).execute();
  await alterPayments.addColumn("refund_started_at", types.timestampMs).execute();
  await alterPayments.addColumn("refund_after", types.integer).execute();
  await alterPayments.addColumn("refunds_abandoned", types.integer).execute();
  await alterPayments.addColumn("is_abandoned", types.integer).execute();
  const alterArchive = schema.alterTable("archived_payments");
  await alterArchive.addColumn("refund_of", types.text).execute();
  await alterArchive.addColumn("refund_started_at", types.timestampMs).execute();
  await schema
    .createTable("refunds")
    .addColumn("id", types.text, (column) => column.primaryKey().notNull())
    .addColumn("payment_id", types.text, (column) => column.notNull())
    .addColumn("n", types.integer, (column) => column.notNull())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("asset", types.text, (column) => column.notNull())
    .addColumn("payer", types.text, (column) => column.notNull())
    .addColumn("nonce", types.text, (column) => column.notNull())
    .addColumn("requested", types.amount)
    .addColumn("amount", types.amount, (column) => column.notNull())
    .addColumn("state", types.text, (column) => column.notNull())
    .addColumn("cause", types.text)
    .addColumn("origin", types.text, (column) => column.notNull())
    .addColumn("reason", types.text)
    .addColumn("idempotency_key", types.text)
    .addColumn("float", types.text)
    .addColumn("valid_before", types.amount)
    .addColumn("operation_id", types.text)
    .addColumn("transaction_hash", types.text)
    .addColumn("block_number", types.integer)
    .addColumn("block_hash", types.text)
    .addColumn("created_at", types.timestampMs, (column) => column.notNull())
    .addColumn("next_at", types.timestampMs, (column) => column.notNull())
    .addColumn("approved_at", types.timestampMs)
    .addColumn("signed_at", types.timestampMs)
    .addColumn("confirmed_at", types.timestampMs)
    .addColumn("final_at", types.timestampMs)
    .execute();
  await schema
    .createIndex("refunds_payment")
    .on("refunds")
    .columns(["payment_id", "n"])
    .unique()
    .execute();
  await schema
    .createIndex("refunds_key")
    .on("refunds")
    .column("idempotency_key")
    .unique()
    .execute();
  await schema.createIndex("refunds_signed").on("refunds").column("signed_at").execute();
  await schema
    .createIndex("refunds_payer")
    .on("refunds")
    .columns(["payer", "created_at"])
    .execute();
  await sql
    .raw(`create index refunds_open on refunds (next_at) where state not in ${closed}`)
    .execute(transaction);
  await schema
    .createTable("refundable_payments")
    .addColumn("payment_id", types.text, (column) => column.primaryKey().notNull())
    .addColumn("due_at", types.timestampMs, (column) => column.notNull())
    .execute();
  await schema
    .createIndex("refundable_payments_due")
    .on("refundable_payments")
    .column("due_at")
    .execute();
  for (const statement of engine === "sqlite" ? sqliteStatements() : postgresStatements) {
    await sql.raw(statement).execute(transaction);
  }
}

const columns = "payment_id, day, network, asset, route_id, state, value, step";

/** The change of a payment, of its `old` or `new` row. */
function change(row: "old" | "new", step: -1 | 0 | 1): string {
  return `insert into payment_changes (${columns}) values (${row}.id, ${row}.created_at / 86400000, ${row}.network, ${row}.asset, coalesce(${row}.route_id, 0), ${row}.state, ${row}.value, ${step});`;
}

interface Step {
  condition: string;
  statement: string;
}

const entered: Step = { condition: `new.state in ${ended}`, statement: change("new", 1) };
const left: Step = { condition: `old.state in ${ended}`, statement: change("old", -1) };
const listed: Step = {
  condition: `new.state in ${unpaid}`,
  statement:
    "insert into unpaid_payments (state, payment_id) values (new.state, new.id) on conflict do nothing;",
};
const unlisted: Step = {
  condition: `old.state in ${unpaid}`,
  statement: "delete from unpaid_payments where state = old.state and payment_id = old.id;",
};
const deleted: Step = { condition: `old.state in ${ended}`, statement: change("old", 0) };
/** The worker drops the row, also that of a payment which has been delivered meanwhile. */
const refundable: Step = {
  condition:
    "new.state = 'confirmed' and new.refund_after is not null and new.delivered_at is null and new.refund_of is null",
  statement:
    "insert into refundable_payments (payment_id, due_at) values (new.id, new.created_at + new.refund_after * 1000) on conflict do nothing;",
};

function sqliteTrigger(name: string, event: string, { condition, statement }: Step): string {
  return `create trigger payments_${name} after ${event} on payments when ${condition} begin ${statement} end`;
}

function sqliteStatements(): string[] {
  const onSale = ({ condition, statement }: Step) => ({
    condition: `old.refund_of is null and ${condition}`,
    statement,
  });
  const onChange = ({ condition, statement }: Step) => ({
    condition: `old.state <> new.state and ${condition}`,
    statement,
  });
  const onUpdate = (step: Step) => onChange(onSale(step));
  const replaced: [string, string, Step][] = [
    ["entered", "update of state", onUpdate(entered)],
    ["left", "update of state", onUpdate(left)],
    ["listed", "update of state", onUpdate(listed)],
    ["unlisted", "update of state", onUpdate(unlisted)],
    ["deleted", "delete", onSale(deleted)],
    ["deleted_unpaid", "delete", onSale(unlisted)],
  ];
  return [
    ...replaced.flatMap(([name, event, step]) => [
      `drop trigger payments_${name}`,
      sqliteTrigger(name, event, step),
    ]),
    sqliteTrigger("refundable", "update of state", onChange(refundable)),
  ];
}

function postgresFunction(name: string, steps: readonly Step[]): string {
  const body = steps.map(({ condition, statement }) => `if ${condition} then ${statement} end if;`);
  return `create or replace function ${name}() returns trigger language plpgsql as $body$ begin ${body.join(" ")} return null; end $body$`;
}

const passOver: Step = { condition: "old.refund_of is not null", statement: "return null;" };

// The triggers stay: to create one waits for all writers.
const postgresStatements = [
  postgresFunction("coinslot_payment_changed", [
    passOver,
    left,
    entered,
    unlisted,
    listed,
    refundable,
  ]),
  postgresFunction("coinslot_payment_deleted", [passOver, deleted, unlisted]),
];
