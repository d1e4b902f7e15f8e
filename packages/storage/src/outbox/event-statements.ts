import { sql, type Transaction } from "kysely";
import type { Dialect } from "../dialect.ts";

/** An event as SQL: for the body of a trigger, which knows `old` and `new`. */
export interface EventSource {
  /** Name of the type. A literal of the program. */
  type: string;
  /** Expression of the key that orders the events. */
  key: string;
  /** Expression of a JSON text: the facts as they are now. */
  payload: string;
}

/** Condition of SQL: an endpoint wants events of this type. One probe of a primary key. */
export function isWanted(type: string): string {
  return `exists (select 1 from outbox_subscriptions where type = ${literal(type)})`;
}

/**
 * Statements that write an event and its deliveries, for the body of a trigger. Run them only where
 * `isWanted`: SQLite would number the deliveries of no event as those of an earlier one.
 */
export function eventStatements(
  { engine }: Pick<Dialect, "engine">,
  { type, key, payload }: EventSource,
): string {
  const name = literal(type);
  if (engine === "sqlite") {
    return `insert into outbox_events (id, key, type, payload, created_at) values (lower(hex(randomblob(8))), ${key}, ${name}, ${payload}, cast(round(unixepoch('subsec') * 1000) as integer)); insert into outbox_deliveries (event_seq, endpoint_id, key, state, attempts, next_at) select last_insert_rowid(), endpoint_id, ${key}, 'pending', 0, 0 from outbox_subscriptions where type = ${name};`;
  }
  return `with event as (insert into outbox_events (id, key, type, payload, created_at) values (substr(replace(gen_random_uuid()::text, '-', ''), 1, 16), ${key}, ${name}, ${payload}, (extract(epoch from clock_timestamp()) * 1000)::bigint) returning seq) insert into outbox_deliveries (event_seq, endpoint_id, key, state, attempts, next_at) select event.seq, endpoint_id, ${key}, 'pending', 0, 0 from event, outbox_subscriptions where type = ${name};`;
}

/**
 * Requires what the statements need of the server: PostgreSQL 13. To be run before a subscription,
 * for without one they are not run: an older server must fail here, and not in the owner's
 * statements.
 *
 * @throws DatabaseError
 */
export async function requireEventIds<Schema>(
  { dialect }: { dialect: Pick<Dialect, "engine"> },
  transaction: Transaction<Schema>,
): Promise<void> {
  if (dialect.engine === "postgres") await sql`select gen_random_uuid()`.execute(transaction);
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
