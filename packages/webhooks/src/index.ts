export { type AttemptOutcome, attemptDelivery, type WebhookTarget } from "./attempt-delivery.ts";
export {
  type Courier,
  type CourierOptions,
  type QueuedWebhook,
  startCourier,
  type WebhookConclusion,
  type WebhookQueue,
} from "./courier.ts";
export { createPoster, type PostEvent } from "./post-event.ts";
export { isPublicAddress } from "./public-address.ts";
export { createHostResolver, createPublicLookup, type ResolveHost } from "./public-lookup.ts";
export { readCallbackUrl } from "./read-callback-url.ts";
export {
  fingerprintOf,
  isReceiverId,
  type Receiver,
  type ReceiverOptions,
  type ReceiverTypes,
  readReceivers,
  receiverId,
} from "./read-receivers.ts";
export { maxRetryDelayMs } from "./retry-delays.ts";
export { shownUrl } from "./shown-url.ts";
export { createSigner, isEventSecret, type SignEvent } from "./sign-event.ts";
export { readWebhookId, webhookBodyOf, webhookIdOf } from "./webhook-body.ts";
