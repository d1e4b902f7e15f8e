import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";

/** Written out, for a migration stays as it was when the states of the program change. */
const ended = "('confirmed', 'failed', 'expired', 'released')";
const unpaid = "('failed', 'expired', 'released')";

/**
 * Sums of ended payments, and the changes that they do not contain yet. README.md, "Sums", gives
 * their rules.
 *
 * Triggers write the changes, so the previous release, which goes on beside this step, writes them
 * too. Payments that ended before this step are summed afterwards, in steps:
 * `payment_sums_progress` says how far. No index is added: to build one would lock a large table.
 */
export async function sumPayments<Schema>(
  transaction: Transaction<Schema>,
  { engine, types, autoIncrement }: Dialect,
): Promise<void> {
  const { schema } = transaction;
  await schema
    .createTable("payment_sums")
    .addColumn("day", types.integer, (column) => column.notNull())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("asset", types.text, (column) => column.notNull())
    .addColumn("route_id", types.integer, (column) => column.notNull())
    .addColumn("state", types.text, (column) => column.notNull())
    .addColumn("count", types.integer, (column) => column.notNull())
    .addColumn("amount", types.sum, (column) => column.notNull())
    .addColumn("deleted_count", types.integer, (column) => column.notNull())
    .addColumn("deleted_amount", types.sum, (column) => column.notNull())
    .addPrimaryKeyConstraint("payment_sums_key", ["day", "network", "asset", "route_id", "state"])
    .execute();
  await schema
    .createTable("payment_changes")
    .addColumn("id", types.integer, autoIncrement)
    .addColumn("payment_id", types.text, (column) => column.notNull())
    .addColumn("day", types.integer, (column) => column.notNull())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("asset", types.text, (column) => column.notNull())
    .addColumn("route_id", types.integer, (column) => column.notNull())
    .addColumn("state", types.text, (column) => column.notNull())
    .addColumn("value", types.amount, (column) => column.notNull())
    .addColumn("step", types.integer, (column) => column.notNull())
    .execute();
  await schema
    .createTable("unpaid_payments")
    .addColumn("state", types.text, (column) => column.notNull())
    .addColumn("payment_id", types.text, (column) => column.notNull())
    .addPrimaryKeyConstraint("unpaid_payments_key", ["state", "payment_id"])
    .execute();
  await schema
    .createTable("payment_sums_progress")
    .addColumn("summed_to", types.text, (column) => column.notNull())
    .addColumn("last_id", types.text, (column) => column.notNull())
    .execute();
  for (const statement of engine === "sqlite" ? sqliteTriggers : postgresTriggers) {
    await sql.raw(statement).execute(transaction);
  }
  // After the triggers: on PostgreSQL their creation waits for writers that have none.
  await sql`
    insert into payment_sums_progress (summed_to, last_id)
    select '', coalesce(max(id), '') from payments
  `.execute(transaction);
}

const columns = "payment_id, day, network, asset, route_id, state, value, step";

/** The change of a payment, of its `old` or `new` row. */
function change(row: "old" | "new", step: -1 | 0 | 1): string {
  return `insert into payment_changes (${columns}) values (${row}.id, ${row}.created_at / 86400000, ${row}.network, ${row}.asset, coalesce(${row}.route_id, 0), ${row}.state, ${row}.value, ${step});`;
}

// SQLite has no `if`: a trigger for each step. One trigger of four conditional statements takes
// eight times as long for a confirmed payment.
const entered = { condition: `new.state in ${ended}`, statement: change("new", 1) };
const left = { condition: `old.state in ${ended}`, statement: change("old", -1) };
const listed = {
  condition: `new.state in ${unpaid}`,
  statement:
    "insert into unpaid_payments (state, payment_id) values (new.state, new.id) on conflict do nothing;",
};
const unlisted = {
  condition: `old.state in ${unpaid}`,
  statement: "delete from unpaid_payments where state = old.state and payment_id = old.id;",
};
const deleted = { condition: `old.state in ${ended}`, statement: change("old", 0) };
const changed = `old.state <> new.state and (old.state in ${ended} or new.state in ${ended})`;

function sqliteTrigger(name: string, event: string, { condition, statement }: typeof entered) {
  return `create trigger payments_${name} after ${event} on payments when ${condition} begin ${statement} end`;
}

function onChange(name: string, { condition, statement }: typeof entered): string {
  const isChanged = `old.state <> new.state and ${condition}`;
  return sqliteTrigger(name, "update of state", { condition: isChanged, statement });
}

const sqliteTriggers = [
  onChange("entered", entered),
  onChange("left", left),
  onChange("listed", listed),
  onChange("unlisted", unlisted),
  sqliteTrigger("deleted", "delete", deleted),
  sqliteTrigger("deleted_unpaid", "delete", unlisted),
];

function postgresFunction(name: string, steps: readonly (typeof entered)[]): string {
  const body = steps.map(({ condition, statement }) => `if ${condition} then ${statement} end if;`);
  return `create function ${name}() returns trigger language plpgsql as $body$ begin ${body.join(" ")} return null; end $body$`;
}

const postgresTriggers = [
  postgresFunction("coinslot_payment_changed", [left, entered, unlisted, listed]),
  postgresFunction("coinslot_payment_deleted", [deleted, unlisted]),
  `create trigger payments_changed after update of state on payments for each row when (${changed}) execute function coinslot_payment_changed()`,
  `create trigger payments_deleted after delete on payments for each row when (old.state in ${ended}) execute function coinslot_payment_deleted()`,
];
