import { randomUUID } from "node:crypto";
import {
  appendEvent,
  type Database,
  type EndpointStanding,
  listDead,
  listEndpoints,
  migrate,
  replayDeliveries,
  requireMigrated,
} from "@coinslot/storage";
import { readWebhookId, receiverId, webhookIdOf } from "@coinslot/webhooks";
import type { Address } from "viem";
import { indexerMigrations } from "../store/migrations/indexer-migrations.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { indexerOutbox } from "./indexer-outbox.ts";
import {
  changeWatched,
  countWatched,
  listWatched,
  maxWatched,
  type WatchedChange,
} from "./watched-addresses.ts";

/** Events of one step of a replay: few enough to delay no writer. */
const replayedAtOnce = 200;

/** A wrong call: an unknown receiver, a text that is no address, too many addresses. */
export class IndexerWebhookError extends Error {
  override readonly name = "IndexerWebhookError";
}

/** A receiver, and how it stands. Counts of events end at 10,000. */
export interface IndexerWebhook extends EndpointStanding {
  /** Addresses that it hears about. */
  watched: number;
}

/** An event whose every attempt has failed. */
export interface DeadIndexerWebhook {
  /** As in `webhook-id`. */
  id: string;
  /** Its number. */
  seq: number;
  endpoint: string;
  key: string;
  type: string;
  /** Unix milliseconds. */
  createdAt: number;
  endedAt: number;
  attempts: number;
  error: string;
}

/** Events to deliver again: one, or those of a time. */
export interface IndexerWebhookRange {
  /** Default: all receivers. */
  receiver?: string | undefined;
  /** As in `webhook-id`. */
  id?: string | undefined;
  /** Unix milliseconds of the event: from, and before. */
  from?: number | undefined;
  to?: number | undefined;
  /** Default: delivered ones, too. */
  deadOnly?: boolean | undefined;
}

/** Addresses to be added and removed. One that is in both is watched. */
export interface WatchedWish {
  add?: readonly string[] | undefined;
  remove?: readonly string[] | undefined;
}

/** The receivers of an indexer's database, and their addresses. */
export interface IndexerWebhooks {
  /** All receivers, the former ones too. */
  list(): Promise<IndexerWebhook[]>;
  /** `unwatch`, then `watch`: all of it, or nothing. */
  change(receiver: string, change: WatchedWish): Promise<WatchedChange>;
  /** Adds addresses, all or none. Resolves with the number of the new ones. */
  watch(receiver: string, addresses: readonly string[]): Promise<number>;
  /** Removes addresses. Their transfers that were sent as included are followed to their end. */
  unwatch(receiver: string, addresses: readonly string[]): Promise<number>;
  /** A page of the watched addresses, in their order. */
  addresses(
    receiver: string,
    page?: { after?: string | undefined; limit?: number | undefined },
  ): Promise<Address[]>;
  /** Those that died last first; `before` is the last one of the page before. */
  dead(page: {
    receiver?: string | undefined;
    before?: Pick<DeadIndexerWebhook, "endedAt" | "seq"> | undefined;
    limit: number;
  }): Promise<DeadIndexerWebhook[]>;
  /** Makes deliveries pending again. Resolves with their number. */
  replay(range: IndexerWebhookRange): Promise<number>;
  /** Sends `webhook.test` to one receiver, or to all. Resolves with their ids. */
  test(receiver?: string): Promise<string[]>;
}

/**
 * Opens the webhooks of an indexer's database: of `indexer.database()`, or of one that is opened
 * for it alone. Receivers are configured in `createIndexer`; here they are named by their `id`,
 * with or without `whk_`. Each method rejects with an `IndexerWebhookError` for a wrong call.
 *
 * @param options.readOnly the database is open for reading. Tables of a former release are left to
 * its service: methods reject with a `DatabaseError` of kind `older-schema`
 */
export function indexerWebhooks(
  database: Database<IndexerSchema>,
  { readOnly = false }: { readOnly?: boolean } = {},
): IndexerWebhooks {
  const outbox = indexerOutbox(database);
  let opening: Promise<void> | undefined;

  /** Finds a receiver: a name with a slip would watch for nobody. */
  async function find(receiver: string): Promise<string> {
    const id = receiverId(receiver);
    const known = (await listed()).map((each) => each.id);
    if (known.includes(id)) return id;
    const names = known.length === 0 ? "none" : known.join(", ");
    throw new IndexerWebhookError(
      `There is no receiver ${JSON.stringify(receiver)} in this database. Known: ${names}. The service registers those of its settings as it starts.`,
    );
  }

  async function listed(): Promise<EndpointStanding[]> {
    opening ??= (readOnly ? requireMigrated : migrate)(database, indexerMigrations);
    await opening;
    return listEndpoints(outbox);
  }

  const webhooks: IndexerWebhooks = {
    async list() {
      const endpoints = await listed();
      return Promise.all(
        endpoints.map(async (each) => ({
          ...each,
          watched: await countWatched(outbox.db, each.id),
        })),
      );
    },
    async change(receiver, { add = [], remove = [] }) {
      const endpoint = await find(receiver);
      const addresses = { add: readAddresses(add), remove: readAddresses(remove) };
      const changed = await changeWatched(outbox, { endpoint, ...addresses });
      if (changed !== undefined) return changed;
      throw new IndexerWebhookError(
        `Nothing was changed: a receiver watches at most ${maxWatched} addresses. Add another receiver.`,
      );
    },

    watch: async (receiver, add) => (await webhooks.change(receiver, { add })).added,

    unwatch: async (receiver, remove) => (await webhooks.change(receiver, { remove })).removed,

    async addresses(receiver, { after, limit = 1_000 } = {}) {
      const endpoint = await find(receiver);
      const [last] = after === undefined ? [] : readAddresses([after]);
      return listWatched(outbox, { endpoint, after: last, limit });
    },
    async dead({ receiver, ...page }) {
      const endpoint = receiver === undefined ? undefined : await find(receiver);
      await listed();
      const dead = await listDead(outbox, { ...page, endpoint });
      return dead.map((each) => ({ ...each, id: webhookIdOf(each) }));
    },
    async replay({ receiver, id, ...range }) {
      const endpoint = receiver === undefined ? undefined : await find(receiver);
      const event = id === undefined ? undefined : readWebhookId(id);
      if (id !== undefined && event === undefined)
        throw new IndexerWebhookError("This is no id of an event: evt_, as in webhook-id.");
      await listed();
      let replayed = 0;
      let after: number | undefined = 0;
      while (after !== undefined) {
        const step: { replayed: number; next: number | undefined } = await replayDeliveries(
          outbox,
          { ...range, endpoint, event },
          { after, limit: replayedAtOnce },
        );
        replayed += step.replayed;
        after = step.next;
      }
      return replayed;
    },
    async test(receiver) {
      const endpoint = receiver === undefined ? undefined : await find(receiver);
      const told = (await listed()).filter(
        ({ id, isEnabled }) => isEnabled && (endpoint === undefined || id === endpoint),
      );
      if (told.length === 0) throw new IndexerWebhookError("No receiver is enabled.");
      for (const { id } of told)
        await appendEvent(outbox, {
          endpoint: id,
          key: `test ${randomUUID()}`,
          type: "webhook.test",
          payload: JSON.stringify({ message: "A test of this receiver: nothing was transferred." }),
        });
      return told.map(({ id }) => id);
    },
  };
  return webhooks;
}

function readAddresses(texts: readonly string[]): Address[] {
  return texts.map((text): Address => {
    if (/^0x[0-9a-fA-F]{40}$/.test(text)) return `0x${text.slice(2).toLowerCase()}`;
    throw new IndexerWebhookError(
      `Not an address: ${JSON.stringify(text.slice(0, 60))}. It has 0x and 40 hex digits.`,
    );
  });
}
