import type * as z from "zod";
import {
  type DeadIndexerWebhook,
  IndexerWebhookError,
  type IndexerWebhookRange,
  type IndexerWebhooks,
  type WatchedWish,
} from "../webhooks/indexer-webhooks.ts";
import type { WatchedChange } from "../webhooks/watched-addresses.ts";
import { transferEventTypes } from "../webhooks/webhook-options.ts";
import { ApiError, badRequest } from "./api-error.ts";
import type { deadListBody, WebhookList } from "./wire/webhook.ts";

/** A receiver, and the owner whose API keys may act on it. Without one, no key may. */
export interface OwnedReceiver {
  /** As in the database: `whk_` and the configured one. */
  id: string;
  owner: string | undefined;
}

/** Acts of the keys of one owner on its receivers. Refusals are `ApiError`s. */
export interface WebhookService {
  list(): Promise<WebhookList>;
  change(receiver: string, wish: WatchedWish): Promise<WatchedChange>;
  /** A page, and the last address of it where there may be more. */
  addresses(receiver: string, page: AddressPage): Promise<{ addresses: string[]; next?: string }>;
  dead(receiver: string, page: DeadPage): Promise<z.infer<typeof deadListBody> & { next?: string }>;
  replay(receiver: string, range: IndexerWebhookRange): Promise<{ replayed: number }>;
  test(receiver: string): Promise<{ success: boolean }>;
}

interface AddressPage {
  after?: string | undefined;
  limit: number;
}

interface DeadPage {
  cursor?: string | undefined;
  limit: number;
}

/** @param owner that of the caller's key */
export function createWebhookService(
  webhooks: IndexerWebhooks,
  { receivers, owner }: { receivers: readonly OwnedReceiver[]; owner: string },
): WebhookService {
  const owned = receivers.flatMap((each) => (each.owner === owner ? each.id : []));

  /** @throws ApiError 404 for one that does not exist, or is another owner's: the same answer */
  function find(receiver: string): string {
    const id = owned.find((each) => each === receiver || each === `whk_${receiver}`);
    if (id === undefined) throw new ApiError(404, "You have no such receiver.");
    return id;
  }

  return {
    async list() {
      const all = await webhooks.list();
      return {
        webhooks: all
          .filter(({ id }) => owned.includes(id))
          .map(({ id, url, types, isEnabled, watched, pending, dead }) => {
            const events = transferEventTypes.filter((type) => types.includes(type));
            return { id, url, events, isEnabled, watched, pending, dead };
          }),
      };
    },

    change: (receiver, wish) => refusing(webhooks.change(find(receiver), wish)),

    async addresses(receiver, page) {
      const addresses = await refusing(webhooks.addresses(find(receiver), page));
      const next = addresses.length < page.limit ? undefined : addresses.at(-1);
      return { addresses, ...(next !== undefined && { next }) };
    },

    async dead(receiver, { cursor, limit }) {
      const before = cursor === undefined ? undefined : readCursor(cursor);
      const page = { receiver: find(receiver), before, limit };
      const found = await refusing(webhooks.dead(page));
      const last = found.length < limit ? undefined : found.at(-1);
      const dead = found.map(({ seq: _seq, endpoint: _endpoint, ...event }) => event);
      return { dead, ...(last !== undefined && { next: `${last.endedAt}-${last.seq}` }) };
    },

    async replay(receiver, range) {
      const wish = { ...range, receiver: find(receiver) };
      return { replayed: await refusing(webhooks.replay(wish)) };
    },

    async test(receiver) {
      await refusing(webhooks.test(find(receiver)));
      return { success: true };
    },
  };
}

async function refusing<Result>(act: Promise<Result>): Promise<Result> {
  return act.catch((error: unknown) => {
    throw error instanceof IndexerWebhookError ? badRequest(error.message) : error;
  });
}

function readCursor(text: string): Pick<DeadIndexerWebhook, "endedAt" | "seq"> {
  const [, endedAt, seq] = /^([0-9]{1,16})-([0-9]{1,16})$/.exec(text) ?? [];
  if (endedAt === undefined || seq === undefined)
    throw badRequest("cursor: must be one from the Link header of the page before");
  return { endedAt: Number(endedAt), seq: Number(seq) };
}
