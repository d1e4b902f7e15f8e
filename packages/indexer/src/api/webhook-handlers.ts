import type * as z from "zod";
import type { ApiStores } from "./api-stores.ts";
import { type Call, linkToNext, readParams, readQuery, requireOwner } from "./call.ts";
import type { Handlers } from "./operation-handlers.ts";
import { operations } from "./operations.ts";
import {
  createWebhookService,
  type OwnedReceiver,
  type WebhookService,
} from "./webhook-operations.ts";

interface WebhookHandlerContext {
  stores: () => Promise<ApiStores>;
  receivers: readonly OwnedReceiver[];
  readBody<Schema extends z.ZodType>(schema: Schema, call: Call): Promise<z.output<Schema>>;
}

type WebhookHandlers = Pick<
  Handlers,
  | "listWebhooks"
  | "listWatchedAddresses"
  | "changeWatchedAddresses"
  | "listDeadWebhooks"
  | "replayWebhooks"
  | "testWebhook"
>;

/** Creates the handlers of the operations on webhooks, for the receivers of the caller's owner. */
export function createWebhookHandlers(context: WebhookHandlerContext): WebhookHandlers {
  const { stores, receivers, readBody } = context;

  async function webhooksOf({ caller }: Call): Promise<WebhookService> {
    const { owner } = requireOwner(caller);
    return createWebhookService((await stores()).webhooks, { receivers, owner });
  }

  return {
    listWebhooks: async (call) => (await webhooksOf(call)).list(),

    async listWatchedAddresses(call) {
      const { receiver } = readParams(operations.listWatchedAddresses.params, call.request);
      const page = readQuery(operations.listWatchedAddresses.query, call.request);
      const { addresses, next } = await (await webhooksOf(call)).addresses(receiver, page);
      linkToNext(call, "after", next);
      return { addresses };
    },

    async changeWatchedAddresses(call) {
      const { receiver } = readParams(operations.changeWatchedAddresses.params, call.request);
      const wish = await readBody(operations.changeWatchedAddresses.body, call);
      return (await webhooksOf(call)).change(receiver, wish);
    },

    async listDeadWebhooks(call) {
      const { receiver } = readParams(operations.listDeadWebhooks.params, call.request);
      const page = readQuery(operations.listDeadWebhooks.query, call.request);
      const { dead, next } = await (await webhooksOf(call)).dead(receiver, page);
      linkToNext(call, "cursor", next);
      return { dead };
    },

    async replayWebhooks(call) {
      const { receiver } = readParams(operations.replayWebhooks.params, call.request);
      const range = await readBody(operations.replayWebhooks.body, call);
      return (await webhooksOf(call)).replay(receiver, range);
    },

    async testWebhook(call) {
      const { receiver } = readParams(operations.testWebhook.params, call.request);
      return (await webhooksOf(call)).test(receiver);
    },
  };
}
