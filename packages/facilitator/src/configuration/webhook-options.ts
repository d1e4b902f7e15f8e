import { createHash } from "node:crypto";
import { isEventSecret, readCallbackUrl } from "@coinslot/webhooks";

/** Every type of event, in the order of a payment's life. */
export const webhookEventTypes = [
  "payment.settled",
  "payment.delivered",
  "payment.final",
  "payment.reverted",
  "payment.failed",
  "refund.created",
  "refund.settled",
  "refund.final",
  "refund.reverted",
] as const;

export type WebhookEventType = (typeof webhookEventTypes)[number];

const idPrefix = "whk_";

/** Told unless `events` names others. One of each payment that is delivered would double them. */
const usualTypes = webhookEventTypes.filter((type) => type !== "payment.delivered");

/** A receiver of the seller's events. */
export interface WebhookOptions {
  /** `https://…`, at a public address. */
  url: string | undefined;
  /** Signs by the Standard Webhooks scheme: `whsec_` and 24 to 64 random bytes in base64. */
  secret?: string | undefined;
  /** Several, during a rotation: each adds a signature. */
  secrets?: readonly (string | undefined)[] | undefined;
  /** Default: all but `payment.delivered`. */
  events?: readonly WebhookEventType[] | undefined;
  /** For development: private addresses, and plain http. */
  unsafeAllowPrivateAddresses?: boolean | undefined;
}

/** A receiver as configured. */
export interface WebhookEndpoint {
  /** A hash of its URL: the same in every process, and with other secrets. */
  id: string;
  url: URL;
  secrets: readonly string[];
  types: readonly WebhookEventType[];
  allowPrivate: boolean;
}

/** Reads the receivers. `undefined`: this process does not decide which there are. */
export function readWebhooks(options: readonly WebhookOptions[] | undefined): {
  webhooks: readonly WebhookEndpoint[] | undefined;
  problems: string[];
} {
  const problems: string[] = [];
  const webhooks = options?.flatMap((each, index) => {
    const found = findProblems(each).map((problem) => `webhooks[${index}]: ${problem}`);
    problems.push(...found);
    const url = urlOf(each);
    return found.length > 0 || url === undefined ? [] : [describe(each, url)];
  });
  const ids = webhooks?.map(({ id }) => id) ?? [];
  for (const [index, id] of ids.entries()) {
    if (ids.indexOf(id) < index) problems.push("webhooks: one URL is named twice");
  }
  return { webhooks, problems };
}

function urlOf({ url, unsafeAllowPrivateAddresses: allowPrivate = false }: WebhookOptions) {
  return readCallbackUrl(url, { allowPrivate });
}

function secretsOf({ secret, secrets = [] }: WebhookOptions): (string | undefined)[] {
  return secret === undefined ? [...secrets] : [secret, ...secrets];
}

function findProblems(options: WebhookOptions): string[] {
  const { events, unsafeAllowPrivateAddresses: allowPrivate = false } = options;
  const problems: string[] = [];
  if (urlOf(options) === undefined) {
    problems.push(
      allowPrivate
        ? "url must begin with https:// or http://, without a user and password"
        : "url must begin with https://, name a public address, and have no user and password",
    );
  }
  const secrets = secretsOf(options);
  if (secrets.length === 0) problems.push("secret is not set: receivers verify each event by it");
  if (!secrets.every((secret) => secret !== undefined && isEventSecret(secret))) {
    problems.push("secret must be whsec_ and 24 to 64 random bytes in base64");
  }
  const types: readonly string[] = webhookEventTypes;
  const unknown = events?.filter((type) => !types.includes(type)) ?? [];
  if (unknown.length > 0) problems.push(`events has an unknown type: ${unknown.join(", ")}`);
  if (events?.length === 0) problems.push("events is empty: leave it out for the usual ones");
  return problems;
}

function describe(options: WebhookOptions, url: URL): WebhookEndpoint {
  const { events = usualTypes, unsafeAllowPrivateAddresses: allowPrivate = false } = options;
  const secrets = secretsOf(options).flatMap((secret) => secret ?? []);
  return { id: idPrefix + digest(url.href), url, secrets, types: events, allowPrivate };
}

/** Returns whether an endpoint of the outbox is a configured receiver, and no listener. */
export function isWebhookId(id: string): boolean {
  return id.startsWith(idPrefix);
}

/** Tells secrets apart, and does not give them away. */
export function fingerprintOf(secret: string): string {
  return digest(secret).slice(0, 8);
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
