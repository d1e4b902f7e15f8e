import { type Receiver, type ReceiverOptions, readReceivers } from "@coinslot/webhooks";

/** Every type of event, in the order of a payment's life, and of a channel's. */
export const webhookEventTypes = [
  "payment.settled",
  "payment.delivered",
  "payment.final",
  "payment.reverted",
  "payment.failed",
  "payment.lost",
  "refund.created",
  "refund.settled",
  "refund.final",
  "refund.reverted",
  "channel.withdrawing",
  "channel.claimed",
  "channel.settled",
  "channel.lost",
] as const;

export type WebhookEventType = (typeof webhookEventTypes)[number];

/** One of each payment that is delivered would double them. */
const usualTypes = webhookEventTypes.filter((type) => type !== "payment.delivered");

/** A receiver of the seller's events. `events`: by default all but `payment.delivered`. */
export type WebhookOptions = ReceiverOptions<WebhookEventType>;

/** A receiver as configured. */
export type WebhookEndpoint = Receiver<WebhookEventType>;

/** Reads the receivers. `undefined`: this process does not decide which there are. */
export function readWebhooks(options: readonly WebhookOptions[] | undefined): {
  webhooks: readonly WebhookEndpoint[] | undefined;
  problems: string[];
} {
  const types = { all: webhookEventTypes, usual: usualTypes };
  const { receivers, problems } = readReceivers(options, types);
  return { webhooks: receivers, problems };
}
