import { sql, type Transaction } from "kysely";
import { type ClaimedDelivery, claimDeliveries } from "./claim-deliveries.ts";
import { concludeDeliveries } from "./conclude-deliveries.ts";
import { requireEventIds } from "./event-statements.ts";
import { type OutboxContext, tableOf, timeOf } from "./outbox-context.ts";

/** Ids of listeners begin with it. `registerEndpoints` leaves them alone. */
export const listenerPrefix = "listen_";

/** Time after its last call for which a listener gets events. */
const patienceMs = 60_000;
const claimMs = 1_000;

/**
 * Takes the next events of a listener: a program of a developer, which asks again and again. The
 * first call makes it an endpoint. A taken event counts as delivered, so a death loses it.
 */
export async function takeEvents<Schema>(
  outbox: OutboxContext<Schema>,
  { listener, types, limit }: { listener: string; types: readonly string[]; limit: number },
): Promise<ClaimedDelivery[]> {
  const endpoint = listenerPrefix + listener;
  await outbox.write(async (transaction) => {
    await requireEventIds(outbox, transaction);
    await sql`
      insert into ${tableOf(outbox, "endpoints")} (id, url, secrets, is_enabled, created_at)
      values (${endpoint}, 'coinslot listen', '[]', 1, ${timeOf(outbox)})
      on conflict (id) do update set created_at = excluded.created_at
    `.execute(transaction);
    for (const type of types) {
      await sql`
        insert into ${tableOf(outbox, "subscriptions")} (type, endpoint_id) values (${type}, ${endpoint})
        on conflict do nothing
      `.execute(transaction);
    }
  });
  const wish = { endpoint, claim: listener, claimMs, limit };
  const { deliveries } = await claimDeliveries(outbox, wish);
  if (deliveries.length > 0) {
    const ended = deliveries.map(({ seq, key }) => ({ seq, key, outcome: "delivered" }) as const);
    await concludeDeliveries(outbox, { endpoint, claim: listener }, ended);
  }
  return deliveries;
}

/** Ends a listener, with what it has not taken. */
export async function dropListener<Schema>(
  outbox: OutboxContext<Schema>,
  listener: string,
): Promise<void> {
  await outbox.write((transaction) => drop(outbox, transaction, listenerPrefix + listener));
}

/** Ends listeners that have not called for a minute. */
export async function dropLostListeners<Schema>(outbox: OutboxContext<Schema>): Promise<void> {
  const { rows } = await sql<{ id: string }>`
    select id from ${tableOf(outbox, "endpoints")}
    where substr(id, 1, ${sql.lit(listenerPrefix.length)}) = ${listenerPrefix}
      and created_at < ${timeOf(outbox)} - ${sql.lit(patienceMs)}
  `.execute(outbox.db);
  for (const { id } of rows) await outbox.write((transaction) => drop(outbox, transaction, id));
}

async function drop<Schema>(
  outbox: OutboxContext<Schema>,
  transaction: Transaction<Schema>,
  endpoint: string,
): Promise<void> {
  await sql`delete from ${tableOf(outbox, "subscriptions")} where endpoint_id = ${endpoint}`.execute(
    transaction,
  );
  await sql`
    update ${tableOf(outbox, "deliveries")} set state = 'delivered', claim = null, ended_at = 0
    where endpoint_id = ${endpoint} and state = 'pending'
  `.execute(transaction);
  await sql`delete from ${tableOf(outbox, "endpoints")} where id = ${endpoint}`.execute(
    transaction,
  );
}
