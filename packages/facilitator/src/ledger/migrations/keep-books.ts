import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";

/**
 * Books in double entry: one row for each movement. README.md, "Books", gives their rules.
 *
 * Triggers post the entries, in the transaction of the change that they record. So the previous
 * release, which goes on beside this step, posts them too. It knows no gas price, so its gas is not
 * posted. Payments that were confirmed before this step are posted afterwards, in steps:
 * `book_progress` says how far. No index is added to a table with rows.
 */
export async function keepBooks<Schema>(
  transaction: Transaction<Schema>,
  { engine, types, autoIncrement }: Dialect,
): Promise<void> {
  const { schema } = transaction;
  await schema.alterTable("transactions").addColumn("gas_cost", types.amount).execute();
  const isSqlite = engine === "sqlite";
  const small = sql`smallint`;
  const entries = schema
    .createTable("book_entries")
    .addColumn("id", types.integer, (column) =>
      isSqlite ? autoIncrement(column) : column.generatedAlwaysAsIdentity(),
    )
    .addColumn("posted_at", types.timestampMs, (column) => column.notNull())
    .addColumn("route_id", types.integer)
    .addColumn("pay_to_id", types.integer)
    .addColumn("debit", small, (column) => column.notNull())
    .addColumn("credit", small, (column) => column.notNull())
    .addColumn("source_id", types.text, (column) => column.notNull())
    .addColumn("amount", types.amount, (column) => column.notNull())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("asset", types.text, (column) => column.notNull());
  // Pages are read by time and id. SQLite's indexes contain the row's id.
  const byTime = ["posted_at", "id"] as const;
  await (isSqlite
    ? entries
    : entries.addPrimaryKeyConstraint("book_entries_key", [...byTime])
  ).execute();
  if (isSqlite) {
    await schema
      .createIndex("book_entries_posted")
      .on("book_entries")
      .column("posted_at")
      .execute();
  }
  const bySource = schema.createIndex("book_entries_source").on("book_entries").column("source_id");
  // Only equal ids are looked for. A hash is a third of the long ids.
  await (isSqlite ? bySource : bySource.using("hash")).execute();
  await schema
    .createTable("book_sums")
    .addColumn("day", types.integer, (column) => column.notNull())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("asset", types.text, (column) => column.notNull())
    .addColumn("route_id", types.integer, (column) => column.notNull())
    .addColumn("debit", small, (column) => column.notNull())
    .addColumn("credit", small, (column) => column.notNull())
    .addColumn("count", types.integer, (column) => column.notNull())
    .addColumn("amount", types.sum, (column) => column.notNull())
    .addColumn("digest", types.text, (column) => column.notNull())
    .addPrimaryKeyConstraint("book_sums_key", [
      "day",
      "network",
      "asset",
      "route_id",
      "debit",
      "credit",
    ])
    .execute();
  await schema
    .createTable("book_periods")
    .addColumn("closed_to", types.timestampMs, (column) => column.primaryKey().notNull())
    .addColumn("closed_at", types.timestampMs, (column) => column.notNull())
    .addColumn("digest", types.text)
    .execute();
  await schema
    .createTable("book_progress")
    .addColumn("posted_to", types.text, (column) => column.notNull())
    .addColumn("last_id", types.text, (column) => column.notNull())
    .execute();
  for (const statement of isSqlite ? sqliteTriggers : postgresTriggers) {
    await sql.raw(statement).execute(transaction);
  }
}

/**
 * Posts payments to the books. A step of its own: the traffic locks payments and transactions in
 * either order, so no transaction of ours may lock both.
 */
export async function bookPayments<Schema>(
  transaction: Transaction<Schema>,
  { engine }: Dialect,
): Promise<void> {
  const statements = engine === "sqlite" ? sqlitePaymentTriggers : postgresPaymentTriggers;
  for (const statement of statements) await sql.raw(statement).execute(transaction);
  // After the triggers: on PostgreSQL their creation waits for writers that have none.
  await sql`
    insert into book_progress (posted_to, last_id)
    select '', coalesce(max(id), '') from (
      select max(id) as id from payments union all select max(id) from archived_payments
    ) as newest
  `.execute(transaction);
}

/** Numbers of the accounts, written out: a migration stays as it was. */
const [wallet, income, refunds, float, gas, relayers] = [1, 2, 3, 4, 5, 6];

/** The database's clock, but never within a closed period. */
function postedAt(engine: Dialect["engine"]): string {
  const closedTo = "coalesce((select max(closed_to) from book_periods), 0)";
  return engine === "sqlite"
    ? `max(cast(round(unixepoch('subsec') * 1000) as integer), ${closedTo})`
    : `greatest((extract(epoch from clock_timestamp()) * 1000)::bigint, ${closedTo})`;
}

const columns = "posted_at, route_id, pay_to_id, debit, credit, source_id, amount, network, asset";

/** Posts a payment: its `old` or `new` row. A reversal swaps the accounts. */
function postPayment(engine: Dialect["engine"], row: "old" | "new"): string {
  const debit = `case when ${row}.refund_of is null then ${wallet} else ${refunds} end`;
  const credit = `case when ${row}.refund_of is null then ${income} else ${float} end`;
  const [to, from] = row === "new" ? [debit, credit] : [credit, debit];
  return `insert into book_entries (${columns}) values (${postedAt(engine)}, ${row}.route_id, ${row}.pay_to_id, ${to}, ${from}, ${row}.id, ${row}.value, ${row}.network, ${row}.asset);`;
}

/** Posts the gas of a transaction, in the native coin. */
function postGas(engine: Dialect["engine"], row: "old" | "new"): string {
  const [to, from] = row === "new" ? [gas, relayers] : [relayers, gas];
  return `insert into book_entries (${columns}) values (${postedAt(engine)}, null, null, ${to}, ${from}, ${row}.id, ${row}.gas_cost, ${row}.network, '');`;
}

/** Posts a refund that another transaction has made: it is no payment of the engine. */
function postRefund(engine: Dialect["engine"], row: "old" | "new"): string {
  const [to, from] = row === "new" ? [refunds, float] : [float, refunds];
  return `insert into book_entries (${columns}) values (${postedAt(engine)}, null, null, ${to}, ${from}, ${row}.id, ${row}.amount, ${row}.network, ${row}.asset);`;
}

interface Step {
  name: string;
  condition: string;
  post: (engine: Dialect["engine"]) => string;
}

const paymentSteps: readonly Step[] = [
  {
    name: "booked",
    condition: "new.state = 'confirmed' and old.state <> 'confirmed'",
    post: (engine) => postPayment(engine, "new"),
  },
  {
    name: "unbooked",
    condition: "old.state = 'confirmed' and new.state <> 'confirmed'",
    post: (engine) => postPayment(engine, "old"),
  },
];

/** In a block: its gas is burnt. */
const included = "('settled', 'final')";

const transactionSteps: readonly Step[] = [
  {
    name: "booked",
    condition: `new.state in ${included} and old.state not in ${included} and new.gas_cost is not null`,
    post: (engine) => postGas(engine, "new"),
  },
  {
    // The previous release leaves the cost of the block that has gone.
    name: "unbooked",
    condition: `old.state in ${included} and new.state not in ${included} and old.gas_cost is not null`,
    post: (engine) =>
      `${postGas(engine, "old")} update transactions set gas_cost = null where id = old.id;`,
  },
];

const paid = "('confirmed', 'final')";

const refundSteps: readonly Step[] = [
  {
    name: "booked",
    condition: `new.state in ${paid} and old.state not in ${paid} and new.operation_id is null`,
    post: (engine) => postRefund(engine, "new"),
  },
  {
    name: "unbooked",
    condition: `old.state in ${paid} and new.state not in ${paid} and old.operation_id is null`,
    post: (engine) => postRefund(engine, "old"),
  },
];

// SQLite has no `if`: a trigger for each step, of one statement.
function sqliteTrigger(table: string, { name, condition, post }: Step): string {
  return `create trigger ${table}_${name} after update of state on ${table} when ${condition} begin ${post("sqlite")} end`;
}

const refused = "an entry of the books never changes";

const sqlitePaymentTriggers = paymentSteps.map((step) => sqliteTrigger("payments", step));

const sqliteTriggers = [
  ...transactionSteps.map((step) => sqliteTrigger("transactions", step)),
  ...refundSteps.map((step) => sqliteTrigger("refunds", step)),
  `create trigger book_entries_kept before update on book_entries begin select raise(abort, '${refused}'); end`,
];

function postgresFunction(name: string, body: string): string {
  return `create function ${name}() returns trigger language plpgsql as $body$ begin ${body} end $body$`;
}

function postgresSteps(steps: readonly Step[]): string {
  const body = steps.map(
    ({ condition, post }) => `if ${condition} then ${post("postgres")} end if;`,
  );
  return `${body.join(" ")} return null;`;
}

const enteredOrLeft = (states: string) => `(old.state in ${states}) <> (new.state in ${states})`;

const postgresPaymentTriggers = [
  postgresFunction("coinslot_payment_booked", postgresSteps(paymentSteps)),
  `create trigger payments_booked after update of state on payments for each row when (${enteredOrLeft("('confirmed')")}) execute function coinslot_payment_booked()`,
];

const postgresTriggers = [
  postgresFunction("coinslot_gas_booked", postgresSteps(transactionSteps)),
  postgresFunction("coinslot_refund_booked", postgresSteps(refundSteps)),
  postgresFunction("coinslot_entry_kept", `raise exception '${refused}';`),
  `create trigger transactions_booked after update of state on transactions for each row when (${enteredOrLeft(included)}) execute function coinslot_gas_booked()`,
  "create trigger refunds_booked after update of state on refunds for each row when (old.state <> new.state) execute function coinslot_refund_booked()",
  "create trigger book_entries_kept before update on book_entries for each row execute function coinslot_entry_kept()",
];
