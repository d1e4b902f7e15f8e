import { type Dialect, type EventSource, eventStatements, isWanted } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";

/**
 * Events of payments and refunds, for the outbox. `../README.md`, "Events", gives their rules.
 *
 * Triggers write them, so the previous release, which goes on beside this step, writes them too. No
 * statement of the engine changes. Without a subscription a change costs one probe of an empty
 * table.
 */
export async function tellOfPayments<Schema>(
  transaction: Transaction<Schema>,
  dialect: Dialect,
): Promise<void> {
  for (const statement of tellingStatements(dialect, tellings)) {
    await sql.raw(statement).execute(transaction);
  }
}

/** The triggers that tell of changes. */
export function tellingStatements(dialect: Dialect, tellings: readonly Telling[]): string[] {
  return (dialect.engine === "sqlite" ? sqliteTriggers : postgresTriggers)(dialect, tellings);
}

/** A change of a row that is told of. */
export interface Telling {
  /** Name of its trigger. Default: that of its type. */
  name?: string;
  table: "payments" | "refunds";
  /** Columns whose update may be told of; none: an insert. */
  columns?: string;
  condition: string;
  /** A condition with a select: it is checked once the event is wanted. */
  isWanted?: string;
  type: string;
  /** The row with the facts. A payment that was taken back has lost its block. */
  facts?: "old" | "new";
}

const isSale = "new.refund_of is null";
const changed = "old.state <> new.state";

const tellings: readonly Telling[] = [
  {
    table: "payments",
    columns: "state",
    condition: `${changed} and new.state = 'confirmed' and ${isSale}`,
    type: "payment.settled",
  },
  {
    table: "payments",
    columns: "state",
    condition: `${changed} and old.state = 'confirmed' and ${isSale}`,
    type: "payment.reverted",
    facts: "old",
  },
  {
    table: "payments",
    columns: "state",
    condition: `${changed} and new.state = 'failed' and old.state in ('queued', 'submitted') and ${isSale}`,
    type: "payment.failed",
  },
  {
    table: "payments",
    columns: "final_at",
    condition: `old.final_at is null and new.final_at is not null and ${isSale}`,
    type: "payment.final",
  },
  {
    table: "payments",
    columns: "delivered_at",
    // The begin of a refund sets it, too: for the previous release.
    condition: `old.delivered_at is null and new.delivered_at is not null and new.refund_started_at is null and ${isSale}`,
    type: "payment.delivered",
  },
  { table: "refunds", condition: "new.n > 0", type: "refund.created" },
  {
    table: "refunds",
    columns: "state",
    condition: `${changed} and new.state = 'confirmed'`,
    type: "refund.settled",
  },
  {
    table: "refunds",
    columns: "state",
    condition: `${changed} and old.state = 'confirmed' and new.state <> 'final'`,
    type: "refund.reverted",
    facts: "old",
  },
  {
    table: "refunds",
    columns: "state",
    condition: `${changed} and new.state = 'final'`,
    type: "refund.final",
  },
];

type Facts = readonly (readonly [name: string, expression: string])[];

function nameOf(id: string): string {
  return `(select name from sold_names where id = ${id})`;
}

function factsOfPayment(row: "old" | "new", amount: string): Facts {
  return [
    ["payment", `${row}.id`],
    ["network", `${row}.network`],
    ["asset", `${row}.asset`],
    ["payer", `${row}.payer`],
    [
      "payTo",
      `coalesce(${nameOf(`${row}.pay_to_id`)}, (select pay_to from orders where payment_id = ${row}.id))`,
    ],
    ["amount", amount],
    ["route", nameOf(`${row}.route_id`)],
    ["resource", nameOf(`${row}.resource_id`)],
    ["transactionHash", `${row}.transaction_hash`],
    ["blockNumber", `${row}.block_number`],
    ["reason", `${row}.reason`],
  ];
}

function factsOfRefund(row: "old" | "new", amount: string): Facts {
  return [
    ["payment", `${row}.payment_id`],
    ["refund", `${row}.id`],
    ["network", `${row}.network`],
    ["asset", `${row}.asset`],
    ["payer", `${row}.payer`],
    ["amount", amount],
    ["transactionHash", `${row}.transaction_hash`],
    ["blockNumber", `${row}.block_number`],
    ["reason", `${row}.reason`],
  ];
}

function wantedBy({ type, isWanted: also }: Telling): string {
  return also === undefined ? isWanted(type) : `${isWanted(type)} and ${also}`;
}

function nameOfTelling({ name, type }: Telling): string {
  return `${name ?? type.replace(".", "_")}_told`;
}

function sourceOf({ engine }: Dialect, { table, type, facts: row = "new" }: Telling): EventSource {
  const isPayment = table === "payments";
  const column = isPayment ? `${row}.value` : `${row}.amount`;
  // SQLite stores an amount behind its number of digits, as `02:`.
  const amount = engine === "sqlite" ? `substr(${column}, 4)` : `${column}::text`;
  const facts = isPayment ? factsOfPayment(row, amount) : factsOfRefund(row, amount);
  const members = facts.map(([name, expression]) => `'${name}', ${expression}`).join(", ");
  return {
    type,
    key: isPayment ? "new.id" : "new.payment_id",
    payload:
      engine === "sqlite" ? `json_object(${members})` : `json_build_object(${members})::text`,
  };
}

function sqliteTriggers(dialect: Dialect, tellings: readonly Telling[]): string[] {
  return tellings.map((telling) => {
    const { table, columns, condition } = telling;
    const event = columns === undefined ? "insert" : `update of ${columns}`;
    const body = eventStatements(dialect, sourceOf(dialect, telling));
    return `create trigger ${nameOfTelling(telling)} after ${event} on ${table} when ${condition} and ${wantedBy(telling)} begin ${body} end`;
  });
}

/** One function for each event: a trigger's condition is checked before its function is called. */
function postgresTriggers(dialect: Dialect, tellings: readonly Telling[]): string[] {
  return tellings.flatMap((telling) => {
    const { table, columns, condition } = telling;
    const name = nameOfTelling(telling);
    const event = columns === undefined ? "insert" : `update of ${columns}`;
    const body = eventStatements(dialect, sourceOf(dialect, telling));
    return [
      `create function coinslot_${name}() returns trigger language plpgsql as $body$ begin if ${wantedBy(telling)} then ${body} end if; return null; end $body$`,
      `create trigger ${name} after ${event} on ${table} for each row when (${condition}) execute function coinslot_${name}()`,
    ];
  });
}
