import * as z from "zod";
import { transferEventTypes } from "../../webhooks/webhook-options.ts";
import { documented } from "./documentation.ts";
import { inQuery, maxPage, pageSize } from "./transfer-query.ts";

/** Addresses of one request: few enough to delay no other one. */
const maxChanged = 1_000;

const count = z.int().min(0);
const time = documented(count, { description: "Milliseconds since the Unix epoch." });
const sizeMessage = `must be a whole number from 1 to ${maxPage}`;
const limit = documented(inQuery(pageSize, sizeMessage).default(maxPage), {
  description: "Maximum number of items.",
});

/** A receiver in a path. */
export const receiverParams = z.object({
  receiver: documented(z.string().min(1).max(100), {
    description: "Its id, with or without whk_.",
    examples: ["default"],
  }),
});

/** An EVM address, in any letter case. */
const watchedAddress = documented(
  z.string().regex(/^0x[0-9a-fA-F]{40}$/, "must be 0x and 40 hexadecimal digits"),
  { id: "WatchedAddress", examples: ["0x90f79bf6eb2c4f870365e785982e1f101e93b906"] },
);

const someAddresses = z.array(watchedAddress).max(maxChanged, `must have at most ${maxChanged}`);

/** A change of the addresses of a receiver. */
export const watchedChangeRequest = documented(
  z
    .strictObject({ add: someAddresses.optional(), remove: someAddresses.optional() })
    .refine(({ add = [], remove = [] }) => add.length + remove.length > 0, {
      error: "must have addresses to add or to remove",
    }),
  { id: "WatchedChangeRequest", description: "One that is in both is watched." },
);

export type WatchedChangeRequest = z.infer<typeof watchedChangeRequest>;

export const watchedChangeBody = documented(
  z.strictObject({
    added: documented(count, { description: "Those that were not watched." }),
    removed: documented(count, { description: "Those that were watched." }),
    watched: documented(count, { description: "All that are watched now." }),
  }),
  { id: "WatchedChange", description: "The change, and its result." },
);

export type WatchedChangeBody = z.infer<typeof watchedChangeBody>;

export const watchedQuery = z.object({
  limit,
  after: documented(watchedAddress.optional(), {
    description: "The last address of the page before.",
  }),
});

export const watchedListBody = documented(z.strictObject({ addresses: z.array(watchedAddress) }), {
  id: "WatchedList",
  description: "A page of addresses, in their order.",
});

export const webhookListBody = documented(
  z.strictObject({
    webhooks: z.array(
      documented(
        z.strictObject({
          id: z.string(),
          url: documented(z.string(), { description: "Without its path and query." }),
          events: z.array(z.enum(transferEventTypes)),
          isEnabled: z.boolean(),
          watched: count,
          pending: documented(count, { description: "Events to be delivered, up to 10,000." }),
          dead: documented(count, { description: "Events given up, up to 10,000." }),
        }),
        { id: "Webhook", description: "A receiver, and how it stands." },
      ),
    ),
  }),
  { id: "WebhookList", description: "The receivers of the caller's owner." },
);

export type WebhookList = z.infer<typeof webhookListBody>;

export const deadQuery = z.object({
  limit,
  cursor: documented(z.string().max(40).optional(), {
    description: 'Cursor of the end of the previous page, from its Link header, rel="next".',
  }),
});

export const deadListBody = documented(
  z.strictObject({
    dead: z.array(
      documented(
        z.strictObject({
          id: documented(z.string(), { description: "As in webhook-id." }),
          key: documented(z.string(), { description: "The transfer: its events are in order." }),
          type: z.string(),
          createdAt: time,
          endedAt: time,
          attempts: count,
          error: z.string(),
        }),
        { id: "DeadWebhook", description: "An event whose every attempt has failed." },
      ),
    ),
  }),
  { id: "DeadWebhookList", description: "Events that were given up, the last ones first." },
);

/** Events to deliver again. */
export const replayRequest = documented(
  z
    .strictObject({
      id: documented(z.string().max(100).optional(), { description: "One, as in webhook-id." }),
      from: time.optional(),
      to: documented(time.optional(), { description: "Exclusive, in milliseconds." }),
      deadOnly: z.boolean().optional(),
    })
    .refine((wish) => Object.values(wish).some((value) => value !== undefined), {
      error: "must have id, from, to or deadOnly",
    }),
  { id: "ReplayRequest" },
);

export type ReplayRequest = z.infer<typeof replayRequest>;

export const replayedBody = documented(z.strictObject({ replayed: count }), {
  id: "Replayed",
  description: "The number of events to be delivered again.",
});

export const webhookTestBody = documented(z.strictObject({ success: z.boolean() }), {
  id: "WebhookTest",
  description: "An event webhook.test is on its way.",
});
