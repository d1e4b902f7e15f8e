import { type Dialect, eventStatements, isWanted } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";

/**
 * Events of payment channels, for the outbox. `../README.md`, "Events", gives their rules.
 *
 * Triggers write them, in the transaction of the change. None is on a column that a charge sets.
 */
export async function tellOfChannels<Schema>(
  transaction: Transaction<Schema>,
  dialect: Dialect,
): Promise<void> {
  for (const telling of tellings) {
    for (const statement of triggersOf(dialect, telling)) {
      await sql.raw(statement).execute(transaction);
    }
  }
}

interface Telling {
  type: string;
  table: "channels" | "channel_states" | "channel_payouts";
  /** Columns whose update is told of. */
  columns?: string;
  /** Of an update. */
  condition?: string;
  /** Of a new row; `undefined`: none is told of. */
  insertCondition?: string;
  facts: (engine: Dialect["engine"]) => Facts;
  key: string;
}

type Facts = readonly (readonly [name: string, expression: string])[];

const terms =
  "from channel_terms where network = new.network and contract = new.contract and channel_id = new.channel_id";
const row =
  "from channels where network = new.network and contract = new.contract and channel_id = new.channel_id";

/** SQLite stores an amount behind its number of digits, as `02:`. */
function textOf(engine: Dialect["engine"], column: string): string {
  return engine === "sqlite" ? `substr(${column}, 4)` : `(${column})::text`;
}

function timeOf(engine: Dialect["engine"], seconds: string): string {
  return engine === "sqlite"
    ? `strftime('%Y-%m-%dT%H:%M:%SZ', ${seconds}, 'unixepoch')`
    : `to_char(to_timestamp(${seconds}) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
}

const factsOfChannel = (engine: Dialect["engine"]): Facts => [
  ["channel", "new.channel_id"],
  ["network", "new.network"],
  ["contract", "new.contract"],
  ["asset", `(select token ${terms})`],
  ["payer", `(select payer ${terms})`],
  ["payTo", `(select receiver ${terms})`],
  ["charged", `(select ${textOf(engine, "charged")} ${row})`],
];

const tellings: readonly Telling[] = [
  {
    type: "channel.withdrawing",
    table: "channel_states",
    columns: "withdraw_at",
    condition:
      "new.withdraw_at is not null and (old.withdraw_at is null or new.withdraw_at > old.withdraw_at)",
    insertCondition: "new.withdraw_at is not null",
    facts: (engine) => [
      ...factsOfChannel(engine),
      ["claimed", textOf(engine, "new.claimed")],
      ["amount", textOf(engine, "new.withdraw_amount")],
      ["deadline", `(select ${timeOf(engine, "new.withdraw_at + withdraw_delay")} ${terms})`],
    ],
    key: "new.channel_id",
  },
  {
    type: "channel.claimed",
    table: "channel_states",
    columns: "final_claimed",
    condition: "new.final_claimed > old.final_claimed",
    facts: (engine) => [
      ...factsOfChannel(engine),
      ["claimed", textOf(engine, "new.final_claimed")],
      ["blockNumber", "new.final_number"],
    ],
    key: "new.channel_id",
  },
  {
    type: "channel.lost",
    table: "channels",
    columns: "lost",
    condition: "new.lost > old.lost",
    facts: (engine) => [...factsOfChannel(engine), ["lost", textOf(engine, "new.lost")]],
    key: "new.channel_id",
  },
  {
    type: "channel.settled",
    table: "channel_payouts",
    insertCondition: "true",
    facts: (engine) => [
      ["network", "new.network"],
      ["contract", "new.contract"],
      ["asset", "new.token"],
      ["payTo", "new.receiver"],
      ["amount", textOf(engine, "new.amount")],
      ["transactionHash", "new.transaction_hash"],
      ["blockNumber", "new.block_number"],
    ],
    key: "new.receiver",
  },
];

function triggersOf(dialect: Dialect, telling: Telling): string[] {
  const { type, table, columns, condition, insertCondition, key } = telling;
  const { engine } = dialect;
  const members = telling.facts(engine).flatMap(([name, expression]) => [`'${name}'`, expression]);
  const object = engine === "sqlite" ? "json_object" : "json_build_object";
  const payload = `${object}(${members.join(", ")})${engine === "sqlite" ? "" : "::text"}`;
  const body = eventStatements(dialect, { type, key, payload });
  const name = `${type.replace(".", "_")}_told`;
  const events = [
    ...(columns === undefined || condition === undefined
      ? []
      : [{ trigger: name, event: `update of ${columns}`, when: condition }]),
    ...(insertCondition === undefined
      ? []
      : [{ trigger: `${name}_first`, event: "insert", when: insertCondition }]),
  ];
  if (engine === "sqlite") {
    return events.map(
      ({ trigger, event, when }) =>
        `create trigger ${trigger} after ${event} on ${table} when ${when} and ${isWanted(type)} begin ${body} end`,
    );
  }
  // A trigger's condition has no select on PostgreSQL.
  return [
    `create function coinslot_${name}() returns trigger language plpgsql as $body$ begin if ${isWanted(type)} then ${body} end if; return null; end $body$`,
    ...events.map(
      ({ trigger, event, when }) =>
        `create trigger ${trigger} after ${event} on ${table} for each row when (${when}) execute function coinslot_${name}()`,
    ),
  ];
}
