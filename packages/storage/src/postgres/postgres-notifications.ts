import { setTimeout as sleep } from "node:timers/promises";
import { createKeyedSingleFlight } from "@coinslot/concurrency";
import { type Client, escapeIdentifier, type Pool, type QueryConfig } from "pg";
import { DatabaseError } from "../database-error.ts";
import { createHandlerRegistry, type Notifications } from "../notifications.ts";
import { postgresError } from "./postgres-error.ts";

export interface PostgresNotificationsOptions {
  pool: Pool;
  label: string;
  /** Limit of a NOTIFY; a later answer means that the connection is dead. */
  answerTimeoutMs: number;
  /** Makes an unconnected client whose queries have a time limit. */
  createClient: () => Client;
  /** Heartbeat interval: it detects a connection that died silently. */
  heartbeatMs: number;
  onBackgroundError: (error: unknown) => void;
}

// Short, since a notification saves whole polling intervals; a server that restarts is back in a
// second.
const reconnectPauseMs = 250;

/**
 * LISTEN on one connection of its own, opened at first use and again after each loss. After a loss,
 * every handler is called with `undefined`. NOTIFY goes through the pool: each is a commit, and
 * PostgreSQL takes one at a time. Equal notifications therefore wait together while one is under
 * way, and go as one.
 */
export function createPostgresNotifications(options: PostgresNotificationsOptions): Notifications {
  const { pool, label, answerTimeoutMs, createClient, heartbeatMs, onBackgroundError } = options;
  const registry = createHandlerRegistry(onBackgroundError);
  let connection: Promise<Client> | undefined;
  let reconnecting = false;
  let closed = false;

  async function connect(): Promise<Client> {
    const client = createClient();
    client.on("error", (error) => onBackgroundError(postgresError(label, error)));
    client.on("notification", ({ channel, payload }) => registry.call(channel, payload ?? ""));
    await client.connect();
    const heartbeat = setInterval(() => {
      client.query("select 1").catch(() => client.end());
    }, heartbeatMs);
    heartbeat.unref();
    client.once("end", () => {
      clearInterval(heartbeat);
      connection = undefined;
      if (!closed && registry.channels().length > 0) void reconnect();
    });
    return client;
  }

  /** The first caller opens the connection; the others wait for the same one. */
  function connected(): Promise<Client> {
    if (closed) return Promise.reject(new DatabaseError("unreachable", `${label} is closed`));
    connection ??= connect().catch((cause) => {
      connection = undefined;
      throw postgresError(label, cause);
    });
    return connection;
  }

  async function reconnect(): Promise<void> {
    if (reconnecting) return;
    reconnecting = true;
    while (!closed) {
      try {
        const client = await connected();
        for (const channel of registry.channels()) await client.query(listenTo(channel));
        break;
      } catch (error) {
        onBackgroundError(error);
      }
      await sleep(reconnectPauseMs, undefined, { ref: false });
    }
    reconnecting = false;
    for (const channel of registry.channels()) registry.call(channel, undefined);
  }

  const sending = createKeyedSingleFlight<string>(async (key) => {
    const [channel, payload]: [string, string] = JSON.parse(key);
    try {
      const query: QueryConfig & { query_timeout: number } = {
        text: "select pg_notify($1, $2)",
        values: [channel, payload],
        query_timeout: answerTimeoutMs,
      };
      await pool.query(query);
    } catch (cause) {
      throw postgresError(label, cause);
    }
  });

  return {
    notify: (channel, payload) => sending.next(JSON.stringify([channel, payload])),
    async listen(channel, handler) {
      registry.add(channel, handler);
      try {
        const client = await connected();
        await client.query(listenTo(channel));
      } catch (cause) {
        registry.remove(channel, handler);
        throw cause instanceof DatabaseError ? cause : postgresError(label, cause);
      }
      return async () => {
        if (!registry.remove(channel, handler)) return;
        const client = await connection?.catch(() => undefined);
        await client?.query(`un${listenTo(channel)}`).catch(() => {});
      };
    },
    async close() {
      closed = true;
      const client = await connection?.catch(() => undefined);
      // A client that waits in vain for an answer ends without waiting for the server's goodbye.
      await client?.query("unlisten *").catch(() => {});
      await client?.end();
    },
  };
}

function listenTo(channel: string): string {
  return `listen ${escapeIdentifier(channel)}`;
}
