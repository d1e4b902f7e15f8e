import { sql } from "kysely";
import { type OutboxContext, tableOf, timeOf } from "./outbox-context.ts";

/** An endpoint, and how it stands. */
export interface EndpointStanding {
  id: string;
  url: string;
  /** Fingerprints of its secrets. */
  secrets: string[];
  isEnabled: boolean;
  types: string[];
  /** Counted up to `countLimit`. */
  pending: number;
  dead: number;
  /** Age of the oldest pending event; `undefined` without one. */
  oldestPendingMs: number | undefined;
}

/** Rows that a count reads, at most. */
const countLimit = 10_000;

type Reads<Schema> = Pick<OutboxContext<Schema>, "db" | "dialect" | "nowMs" | "tables">;

/** All endpoints, the disabled ones too, by their ids. */
export async function listEndpoints<Schema>(outbox: Reads<Schema>): Promise<EndpointStanding[]> {
  const { rows } = await sql<{ id: string; url: string; secrets: string; is_enabled: number }>`
    select id, url, secrets, is_enabled from ${tableOf(outbox, "endpoints")} order by id
  `.execute(outbox.db);
  return Promise.all(
    rows.map(async ({ id, url, secrets, is_enabled }) => {
      const [types, backlog] = await Promise.all([typesOf(outbox, id), readBacklog(outbox, id)]);
      const parsed: unknown = JSON.parse(secrets);
      return {
        id,
        url,
        secrets: Array.isArray(parsed) ? parsed.map(String) : [],
        isEnabled: is_enabled === 1,
        types,
        ...backlog,
      };
    }),
  );
}

async function typesOf<Schema>(outbox: Reads<Schema>, endpoint: string): Promise<string[]> {
  const { rows } = await sql<{ type: string }>`
    select type from ${tableOf(outbox, "subscriptions")} where endpoint_id = ${endpoint} order by type
  `.execute(outbox.db);
  return rows.map(({ type }) => type);
}

/** Pending and dead deliveries of an endpoint. */
export async function readBacklog<Schema>(
  outbox: Reads<Schema>,
  endpoint: string,
): Promise<Pick<EndpointStanding, "pending" | "dead" | "oldestPendingMs">> {
  const { rows } = await sql<{ pending: number; dead: number; oldest_ms: number | null }>`
    with waiting as (
      select event_seq from ${tableOf(outbox, "deliveries")}
      where endpoint_id = ${endpoint} and state = 'pending'
      order by next_at, event_seq limit ${sql.lit(countLimit)}
    )
    select (select count(*) from waiting) as pending,
      (select count(*) from (
        select 1 as one from ${tableOf(outbox, "deliveries")}
        where state = 'dead' and ended_at is not null and endpoint_id = ${endpoint}
        limit ${sql.lit(countLimit)}
      ) as ended) as dead,
      ${timeOf(outbox)} - (
        select created_at from ${tableOf(outbox, "events")} where seq = (select min(event_seq) from waiting)
      ) as oldest_ms
  `.execute(outbox.db);
  const [row] = rows;
  const oldestMs = row?.oldest_ms ?? undefined;
  return {
    pending: row?.pending ?? 0,
    dead: row?.dead ?? 0,
    oldestPendingMs: oldestMs === undefined ? undefined : Math.max(0, oldestMs),
  };
}

/** A delivery whose every attempt has failed. */
export interface DeadDelivery {
  seq: number;
  id: string;
  endpoint: string;
  key: string;
  type: string;
  createdAt: number;
  endedAt: number;
  attempts: number;
  error: string;
}

/**
 * Dead deliveries, those that died last first.
 *
 * @param page `before`: the last one of the page before
 */
export async function listDead<Schema>(
  outbox: Reads<Schema>,
  page: {
    endpoint?: string | undefined;
    before?: { endedAt: number; seq: number } | undefined;
    limit: number;
  },
): Promise<DeadDelivery[]> {
  const { endpoint, before, limit } = page;
  const isOfEndpoint = endpoint === undefined ? sql`1 = 1` : sql`endpoint_id = ${endpoint}`;
  const isBefore =
    before === undefined
      ? sql`ended_at is not null`
      : sql`(ended_at < ${before.endedAt} or (ended_at = ${before.endedAt} and event_seq < ${before.seq}))`;
  const { rows } = await sql<DeadDelivery>`
    select events.seq as seq, events.id as id, deliveries.endpoint_id as endpoint,
      events.key as key, events.type as type, events.created_at as "createdAt",
      deliveries.ended_at as "endedAt", deliveries.attempts as attempts,
      coalesce(deliveries.error, '') as error
    from ${tableOf(outbox, "deliveries")} as deliveries join ${tableOf(outbox, "events")} as events
      on events.seq = deliveries.event_seq
    where deliveries.state = 'dead' and ended_at is not null and ${isBefore} and ${isOfEndpoint}
    order by deliveries.ended_at desc, deliveries.event_seq desc limit ${limit}
  `.execute(outbox.db);
  return rows;
}
