import { sql, type Transaction } from "kysely";
import { requireEventIds } from "./event-statements.ts";
import { listenerPrefix } from "./listeners.ts";
import { type OutboxContext, tableOf, timeOf } from "./outbox-context.ts";

/** A receiver of events. */
export interface OutboxEndpoint {
  id: string;
  /** For people: without its path and query, which may be secrets. */
  url: string;
  /** Fingerprints of its secrets. */
  secrets: readonly string[];
  types: readonly string[];
}

/**
 * Makes these the endpoints of the outbox, in one database transaction. Each one gets the events
 * that are written from now on. Others get no new ones; their pending deliveries stay.
 *
 * Two processes with different endpoints may race: the last one decides. One that has no opinion
 * must not call it.
 */
export async function registerEndpoints<Schema>(
  outbox: OutboxContext<Schema>,
  endpoints: readonly OutboxEndpoint[],
): Promise<void> {
  await outbox.write(async (transaction) => {
    await outbox.dialect.lockKey(transaction, `coinslot:${outbox.tables ?? "outbox"}`);
    await requireEventIds(outbox, transaction);
    await disable(outbox, transaction, endpoints);
    for (const endpoint of endpoints) await enable(outbox, transaction, endpoint);
  });
}

async function disable<Schema>(
  outbox: OutboxContext<Schema>,
  transaction: Transaction<Schema>,
  kept: readonly OutboxEndpoint[],
): Promise<void> {
  const { rows } = await sql<{ id: string }>`
    select id from ${tableOf(outbox, "endpoints")} where is_enabled = 1
  `.execute(transaction);
  for (const { id } of rows) {
    if (id.startsWith(listenerPrefix) || kept.some((endpoint) => endpoint.id === id)) continue;
    await sql`update ${tableOf(outbox, "endpoints")} set is_enabled = 0 where id = ${id}`.execute(
      transaction,
    );
    await sql`delete from ${tableOf(outbox, "subscriptions")} where endpoint_id = ${id}`.execute(
      transaction,
    );
  }
}

async function enable<Schema>(
  outbox: OutboxContext<Schema>,
  transaction: Transaction<Schema>,
  { id, url, secrets, types }: OutboxEndpoint,
): Promise<void> {
  await sql`
    insert into ${tableOf(outbox, "endpoints")} (id, url, secrets, is_enabled, created_at)
    values (${id}, ${url}, ${JSON.stringify(secrets)}, 1, ${timeOf(outbox)})
    on conflict (id) do update
    set url = excluded.url, secrets = excluded.secrets, is_enabled = 1
  `.execute(transaction);
  await sql`delete from ${tableOf(outbox, "subscriptions")} where endpoint_id = ${id}`.execute(
    transaction,
  );
  for (const type of new Set(types)) {
    await sql`
      insert into ${tableOf(outbox, "subscriptions")} (type, endpoint_id) values (${type}, ${id})
    `.execute(transaction);
  }
}
