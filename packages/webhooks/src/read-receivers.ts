import { createHash } from "node:crypto";
import { readCallbackUrl } from "./read-callback-url.ts";
import { isEventSecret } from "./sign-event.ts";

const idPrefix = "whk_";

/** A receiver of webhooks, as an option. */
export interface ReceiverOptions<Type extends string> {
  /**
   * Its name. A receiver with one keeps its backlog when its URL moves. 1 to 32 small letters,
   * digits, dashes and underscores. Default: a hash of the URL.
   */
  id?: string | undefined;
  /** `https://…`, at a public address. */
  url: string | undefined;
  /** Signs by the Standard Webhooks scheme: `whsec_` and 24 to 64 random bytes in base64. */
  secret?: string | undefined;
  /** Several, during a rotation: each adds a signature. */
  secrets?: readonly (string | undefined)[] | undefined;
  /** Types of event. Default: the usual ones. */
  events?: readonly Type[] | undefined;
  /** For development: private addresses, and plain http. */
  unsafeAllowPrivateAddresses?: boolean | undefined;
}

/** A receiver as configured. */
export interface Receiver<Type extends string> {
  /** As configured, or a hash of its URL: the same in every process, and with other secrets. */
  id: string;
  url: URL;
  secrets: readonly string[];
  types: readonly Type[];
  allowPrivate: boolean;
}

/** The types of event of a sender. */
export interface ReceiverTypes<Type extends string> {
  all: readonly Type[];
  /** Told unless `events` names others. */
  usual: readonly Type[];
}

/**
 * Reads the option `webhooks`. `undefined`: this process does not decide which receivers there are.
 */
export function readReceivers<Type extends string>(
  options: readonly ReceiverOptions<Type>[] | undefined,
  types: ReceiverTypes<Type>,
): { receivers: readonly Receiver<Type>[] | undefined; problems: string[] } {
  const problems: string[] = [];
  const receivers = options?.flatMap((each, index) => {
    const found = findProblems(each, types).map((problem) => `webhooks[${index}]: ${problem}`);
    problems.push(...found);
    const url = urlOf(each);
    return found.length > 0 || url === undefined ? [] : [describe(each, { url, types })];
  });
  if (hasTwice(receivers?.map(({ url }) => url.href))) {
    problems.push("webhooks: one URL is named twice");
  } else if (hasTwice(receivers?.map(({ id }) => id))) {
    problems.push("webhooks: one id is named twice");
  }
  return { receivers, problems };
}

function hasTwice(texts: readonly string[] = []): boolean {
  return new Set(texts).size < texts.length;
}

/** Ids of 16 hex digits are hashes of URLs. */
function isConfigurable(id: string): boolean {
  return /^[a-z0-9_-]{1,32}$/.test(id) && !/^[0-9a-f]{16}$/.test(id);
}

function urlOf({
  url,
  unsafeAllowPrivateAddresses: allowPrivate = false,
}: ReceiverOptions<string>): URL | undefined {
  return readCallbackUrl(url, { allowPrivate });
}

function secretsOf({ secret, secrets = [] }: ReceiverOptions<string>): (string | undefined)[] {
  return secret === undefined ? [...secrets] : [secret, ...secrets];
}

function findProblems<Type extends string>(
  options: ReceiverOptions<Type>,
  { all }: ReceiverTypes<Type>,
): string[] {
  const { id, events, unsafeAllowPrivateAddresses: allowPrivate = false } = options;
  const problems: string[] = [];
  if (id !== undefined && !isConfigurable(id)) {
    problems.push(
      "id must have 1 to 32 small letters, digits, dashes and underscores, and not be 16 hex digits",
    );
  }
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
  const unknown = events?.filter((type) => !all.includes(type)) ?? [];
  if (unknown.length > 0) problems.push(`events has an unknown type: ${unknown.join(", ")}`);
  if (events?.length === 0) problems.push("events is empty: leave it out for the usual ones");
  return problems;
}

function describe<Type extends string>(
  options: ReceiverOptions<Type>,
  { url, types }: { url: URL; types: ReceiverTypes<Type> },
): Receiver<Type> {
  const { events = types.usual, unsafeAllowPrivateAddresses: allowPrivate = false } = options;
  const secrets = secretsOf(options).flatMap((secret) => secret ?? []);
  const id = idPrefix + (options.id ?? digest(url.href));
  return { id, url, secrets, types: events, allowPrivate };
}

/** Returns whether an endpoint of an outbox is a configured receiver, and no listener. */
export function isReceiverId(id: string): boolean {
  return id.startsWith(idPrefix);
}

/** The endpoint of the receiver with this `id`, or of its id in an outbox. */
export function receiverId(name: string): string {
  return isReceiverId(name) ? name : idPrefix + name;
}

/** Tells secrets apart, and does not give them away. */
export function fingerprintOf(secret: string): string {
  return digest(secret).slice(0, 8);
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
