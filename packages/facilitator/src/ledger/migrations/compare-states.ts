import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";

/**
 * Writes the conditions of the sums' triggers on SQLite as comparisons. Their meaning stays.
 *
 * A list of three or more values becomes a table of its own. A statement fills it once, and a
 * trigger anew for each row. Four such tables took half of the time in which a payment was queued,
 * or submitted. PostgreSQL plans a function's lists once.
 */
export async function compareStates<Schema>(
  transaction: Transaction<Schema>,
  { engine }: Dialect,
): Promise<void> {
  if (engine !== "sqlite") return;
  for (const { name, condition, statement } of steps) {
    await sql.raw(`drop trigger payments_${name}`).execute(transaction);
    const when = `old.state <> new.state and old.refund_of is null and ${condition}`;
    const trigger = `create trigger payments_${name} after update of state on payments when ${when} begin ${statement} end`;
    await sql.raw(trigger).execute(transaction);
  }
}

type Row = "old" | "new";

function isUnpaid(row: Row): string {
  return `(${row}.state = 'failed' or ${row}.state = 'expired' or ${row}.state = 'released')`;
}

function hasEnded(row: Row): string {
  return `(${row}.state = 'confirmed' or ${isUnpaid(row)})`;
}

/** The change of a payment. Written out, for a migration stays as it was. */
function change(row: Row, step: -1 | 1): string {
  return `insert into payment_changes (payment_id, day, network, asset, route_id, state, value, step) values (${row}.id, ${row}.created_at / 86400000, ${row}.network, ${row}.asset, coalesce(${row}.route_id, 0), ${row}.state, ${row}.value, ${step});`;
}

const steps = [
  { name: "entered", condition: hasEnded("new"), statement: change("new", 1) },
  { name: "left", condition: hasEnded("old"), statement: change("old", -1) },
  {
    name: "listed",
    condition: isUnpaid("new"),
    statement:
      "insert into unpaid_payments (state, payment_id) values (new.state, new.id) on conflict do nothing;",
  },
  {
    name: "unlisted",
    condition: isUnpaid("old"),
    statement: "delete from unpaid_payments where state = old.state and payment_id = old.id;",
  },
];
