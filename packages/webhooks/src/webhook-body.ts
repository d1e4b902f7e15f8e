/** An event as an outbox has it. */
interface EventRow {
  seq: number;
  id: string;
  type: string;
  /** JSON, an object. */
  payload: string;
  /** Unix milliseconds. */
  createdAt: number;
}

/** The id of an event for its receiver: `evt_`, its number, and what makes it unique. */
export function webhookIdOf({ seq, id }: { seq: number; id: string }): string {
  return `evt_${seq}_${id}`;
}

/** The number and the rest of a public id. */
export function readWebhookId(text: string): { seq: number; id: string } | undefined {
  const [, seq, id] = /^evt_(\d{1,15})_([0-9a-f]{16})$/.exec(text) ?? [];
  return seq === undefined || id === undefined ? undefined : { seq: Number(seq), id };
}

/** The same bytes in every attempt. Facts that are not known are left out. */
export function webhookBodyOf(delivery: EventRow): string {
  const payload: unknown = JSON.parse(delivery.payload, (_, value) => value ?? undefined);
  return JSON.stringify({
    id: webhookIdOf(delivery),
    type: delivery.type,
    timestamp: new Date(delivery.createdAt).toISOString(),
    data: payload,
  });
}
