import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";

const key = ["network", "contract", "channel_id"] as const;

/**
 * Sums of charges by day, token and route, and the changes that they do not contain yet.
 * README.md, "Sums of charges", gives their rules.
 *
 * Triggers write the changes, so the previous release, which goes on beside this step, writes them
 * too. Charges from before this step are added afterwards, in steps: `charge_sums_progress` says
 * how far.
 */
export async function sumCharges<Schema>(
  transaction: Transaction<Schema>,
  { engine, types, autoIncrement }: Dialect,
): Promise<void> {
  const { schema } = transaction;
  await schema
    .createTable("charge_sums")
    .addColumn("day", types.integer, (column) => column.notNull())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("asset", types.text, (column) => column.notNull())
    .addColumn("route_id", types.integer, (column) => column.notNull())
    .addColumn("is_reversal", types.integer, (column) => column.notNull())
    .addColumn("count", types.sum, (column) => column.notNull())
    .addColumn("amount", types.sum, (column) => column.notNull())
    .addPrimaryKeyConstraint("charge_sums_key", [
      ...(["day", "network", "asset", "route_id", "is_reversal"] as const),
    ])
    .execute();
  await schema
    .createTable("charge_changes")
    .addColumn("id", types.integer, autoIncrement)
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("contract", types.text, (column) => column.notNull())
    .addColumn("channel_id", types.text, (column) => column.notNull())
    .addColumn("day", types.integer, (column) => column.notNull())
    .addColumn("asset", types.text, (column) => column.notNull())
    .addColumn("route_id", types.integer, (column) => column.notNull())
    .addColumn("is_reversal", types.integer, (column) => column.notNull())
    .addColumn("count", types.amount, (column) => column.notNull())
    .addColumn("amount", types.amount, (column) => column.notNull())
    .addColumn("old_count", types.amount, (column) => column.notNull())
    .addColumn("old_amount", types.amount, (column) => column.notNull())
    .execute();
  await schema
    .createTable("charge_sums_progress")
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("contract", types.text, (column) => column.notNull())
    .addColumn("channel_id", types.text, (column) => column.notNull())
    .addColumn("day", types.integer, (column) => column.notNull())
    .addColumn("route_id", types.integer, (column) => column.notNull())
    .addColumn("is_reversal", types.integer, (column) => column.notNull())
    .addColumn("is_whole", types.integer, (column) => column.notNull())
    .execute();
  for (const statement of triggers(engine)) await sql.raw(statement).execute(transaction);
  // After the triggers: on PostgreSQL their creation waits for writers that have none.
  await sql`
    insert into charge_sums_progress
      (network, contract, channel_id, day, route_id, is_reversal, is_whole)
    select '', '', '', 0, 0, 0, case when exists (select 1 from channel_sums) then 0 else 1 end
  `.execute(transaction);
}

const sumKey = [...key, "day", "route_id", "is_reversal"];
const columns = [...sumKey, "count", "amount", "old_count", "old_amount"].join(", ");

/** The change of a row of `channel_sums`. A row that is not there counts nothing. */
function change(engine: Dialect["engine"], event: "insert" | "update" | "delete"): string {
  const row = event === "delete" ? "old" : "new";
  const none = engine === "sqlite" ? "'01:0'" : "0";
  const values = [
    ...sumKey.map((column) => `${row}.${column}`),
    ...(event === "delete" ? [none, none] : ["new.count", "new.amount"]),
    ...(event === "insert" ? [none, none] : ["old.count", "old.amount"]),
  ];
  const at = key.map((column) => `${column} = ${row}.${column}`).join(" and ");
  return `insert into charge_changes (${columns}, asset) select ${values.join(", ")}, token from channel_terms where ${at};`;
}

function triggers(engine: Dialect["engine"]): string[] {
  const events = [
    { name: "added", event: "insert" },
    { name: "raised", event: "update" },
    { name: "removed", event: "delete" },
  ] as const;
  if (engine === "sqlite") {
    return events.map(
      ({ name, event }) =>
        `create trigger channel_sums_${name} after ${event} on channel_sums begin ${change(engine, event)} end`,
    );
  }
  return events.flatMap(({ name, event }) => [
    `create function coinslot_charges_${name}() returns trigger language plpgsql as $body$ begin ${change(engine, event)} return null; end $body$`,
    `create trigger channel_sums_${name} after ${event} on channel_sums for each row execute function coinslot_charges_${name}()`,
  ]);
}
