import type { Clock } from "@coinslot/chain";
import {
  type Database,
  listEndpoints,
  type OutboxContext,
  registerEndpoints,
} from "@coinslot/storage";
import { fingerprintOf, isReceiverId, shownUrl } from "@coinslot/webhooks";
import type { EventSignal } from "../event-signal.ts";
import type { IndexerLogger } from "../logger.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { indexerOutbox } from "./indexer-outbox.ts";
import { keepOutbox } from "./keep-outbox.ts";
import { startDelivering } from "./start-delivering.ts";
import type { IndexerReceiver } from "./webhook-options.ts";

/** Deliveries under way at the end of a process get this time. Later ones are repeated. */
const graceMs = 3_000;

/** An attempt to deliver a webhook. */
export interface DeliveredWebhook {
  endpoint: string;
  outcome: "delivered" | "failed" | "dead";
}

export interface WebhooksContext {
  outbox: OutboxContext<IndexerSchema>;
  clock: Clock;
  /** Unix milliseconds. */
  now: () => number;
  logger: IndexerLogger;
  onWebhook: (webhook: DeliveredWebhook) => void;
}

/** The running webhooks of a process. */
export interface Webhooks {
  stop(): Promise<void>;
}

/**
 * Makes the configured receivers those of the database, and delivers their events, beside other
 * processes that do. The README has the way of an event.
 */
export async function startWebhooks(
  options: Omit<WebhooksContext, "outbox"> & {
    database: Database<IndexerSchema>;
    /** Undefined: this process neither decides which there are nor delivers. */
    receivers: readonly IndexerReceiver[] | undefined;
    events: EventSignal;
  },
): Promise<Webhooks> {
  const { database, receivers, events, ...rest } = options;
  const context: WebhooksContext = { ...rest, outbox: indexerOutbox(database) };
  if (receivers === undefined) {
    await warnUndelivered(context);
    // Transfers are told all the same, and forgotten.
    return keepOutbox(context, []);
  }
  await registerEndpoints(
    context.outbox,
    receivers.map(({ id, url, secrets, types }) => ({
      id,
      url: shownUrl(url.href),
      secrets: secrets.map(fingerprintOf),
      types,
    })),
  );
  const running = receivers.map((receiver) => startDelivering(context, receiver));
  const keeping = keepOutbox(
    context,
    receivers.map(({ id }) => id),
  );
  const end = events.listen(() => {
    for (const { wake } of running) wake();
  });
  return {
    async stop() {
      end();
      await keeping.stop();
      await Promise.all(running.map(({ stop }) => stop({ graceMs })));
    },
  };
}

async function warnUndelivered({ outbox, logger }: WebhooksContext): Promise<void> {
  const registered = await listEndpoints(outbox);
  const endpoints = registered.flatMap(({ id, isEnabled }) =>
    isEnabled && isReceiverId(id) ? id : [],
  );
  if (endpoints.length > 0)
    logger.warn(
      { endpoints },
      "The database has webhooks that this process does not deliver: name them, or none, in `webhooks`",
    );
}
