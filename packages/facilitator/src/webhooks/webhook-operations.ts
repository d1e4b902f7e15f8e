import { randomUUID } from "node:crypto";
import {
  appendEvent,
  dropListener,
  listDead,
  listEndpoints,
  replayDeliveries,
  takeEvents,
} from "@coinslot/storage";
import { readWebhookId, webhookIdOf } from "@coinslot/webhooks";
import * as z from "zod";
import { webhookEventTypes } from "../configuration/webhook-options.ts";
import { defineOperation } from "../operators/operation.ts";
import { OperationRefusedError } from "../operators/operation-refused-error.ts";

/** Events of one step of a replay: few enough to delay no writer. */
const replayedAtOnce = 200;

const endpointId = z.string().max(64);
const milliseconds = z.int().min(0);

const endpointSchema = z.object({
  id: z.string(),
  url: z.string(),
  secrets: z.array(z.string()),
  isEnabled: z.boolean(),
  types: z.array(z.string()),
  pending: z.number(),
  dead: z.number(),
  oldestPendingMs: z.number().optional(),
});

/** A receiver of webhooks, and how it stands. Counts end at 10,000. */
export type WebhookStanding = z.infer<typeof endpointSchema>;

export const listOperation = defineOperation({
  name: "webhooks.list",
  access: "read",
  argument: z.strictObject({}),
  result: z.object({ endpoints: z.array(endpointSchema) }),
  run: async (reads) => ({ endpoints: await listEndpoints(reads) }),
});

const pageSchema = z.object({ endedAt: milliseconds, seq: milliseconds });
const deadSchema = z.object({
  ...pageSchema.shape,
  id: z.string(),
  endpoint: z.string(),
  key: z.string(),
  type: z.string(),
  createdAt: z.number(),
  attempts: z.number(),
  error: z.string(),
});

/** An event whose every attempt has failed. `key` is the id of its payment. */
export type DeadWebhook = z.infer<typeof deadSchema>;

export const deadOperation = defineOperation({
  name: "webhooks.dead",
  access: "read",
  argument: z.strictObject({
    endpoint: endpointId.optional(),
    before: pageSchema.optional(),
    limit: z.int().min(1).max(1_000),
  }),
  result: z.object({ dead: z.array(deadSchema) }),
  run: async (reads, page) => {
    const dead = await listDead(reads, page);
    return { dead: dead.map((each) => ({ ...each, id: webhookIdOf(each) })) };
  },
});

const replayedSchema = z.object({ replayed: z.number(), next: z.number().optional() });

/** Events of one step of a replay, and the argument of the next one. */
export type Replayed = z.infer<typeof replayedSchema>;

/** One step; the caller goes on at `next`. A repetition delivers again, with the same ids. */
export const replayOperation = defineOperation({
  name: "webhooks.replay",
  access: "write",
  argument: z.strictObject({
    endpoint: endpointId.optional(),
    id: z.string().max(64).optional(),
    from: milliseconds.optional(),
    to: milliseconds.optional(),
    deadOnly: z.boolean().optional(),
    after: milliseconds,
  }),
  result: replayedSchema,
  run: async ({ ledger }, { id, after, ...range }) => {
    const event = id === undefined ? undefined : readWebhookId(id);
    if (id !== undefined && event === undefined) {
      throw new OperationRefusedError(
        "unknown_event",
        "This is no id of an event: evt_, as in webhook-id.",
      );
    }
    return replayDeliveries(ledger, { ...range, event }, { after, limit: replayedAtOnce });
  },
});

export const testOperation = defineOperation({
  name: "webhooks.test",
  access: "write",
  argument: z.strictObject({ endpoint: endpointId.optional() }),
  result: z.object({ endpoints: z.array(z.string()) }),
  async run({ ledger }, { endpoint }) {
    const enabled = (await listEndpoints(ledger)).filter(({ isEnabled }) => isEnabled);
    const told = enabled.filter(({ id }) => endpoint === undefined || id === endpoint);
    if (told.length === 0)
      throw new OperationRefusedError("unknown_receiver", "There is no such receiver.");
    for (const { id } of told) {
      await appendEvent(ledger, {
        endpoint: id,
        key: `test ${randomUUID()}`,
        type: "webhook.test",
        payload: JSON.stringify({ message: "A test of this receiver: no payment was made." }),
      });
    }
    return { endpoints: told.map(({ id }) => id) };
  },
});

const listenerId = z.string().regex(/^[0-9a-f-]{36}$/);
const takenSchema = z.object({
  seq: z.number(),
  id: z.string(),
  key: z.string(),
  type: z.string(),
  payload: z.string(),
  createdAt: z.number(),
  attempts: z.number(),
});

/** An event as a listener takes it. */
export type TakenEvent = z.infer<typeof takenSchema>;

export const takeOperation = defineOperation({
  name: "webhooks.take",
  access: "write",
  isAudited: false,
  argument: z.strictObject({ listener: listenerId, limit: z.int().min(1).max(100) }),
  result: z.object({ events: z.array(takenSchema) }),
  run: async ({ ledger }, { listener, limit }) => ({
    events: await takeEvents(ledger, { listener, types: webhookEventTypes, limit }),
  }),
});

export const leaveOperation = defineOperation({
  name: "webhooks.leave",
  access: "write",
  isAudited: false,
  argument: z.strictObject({ listener: listenerId }),
  result: z.object({}),
  async run({ ledger }, { listener }) {
    await dropListener(ledger, listener);
    return {};
  },
});

export const webhookOperations = [
  listOperation,
  deadOperation,
  replayOperation,
  testOperation,
  takeOperation,
  leaveOperation,
];
