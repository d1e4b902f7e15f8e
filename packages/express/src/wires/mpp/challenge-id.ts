import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto";
import type { Challenge } from "@coinslot/protocol";
import type { ChallengeSecrets } from "../../mpp-options.ts";

/** A challenge before its id is known. */
export type Terms = Omit<Challenge, "id">;

/** The keys of secrets: the first makes ids, all prove them. */
export type ChallengeKeys = readonly [current: KeyObject, ...retired: KeyObject[]];

/** Makes keys of secrets once, and not for each challenge. */
export function keysOf([current, ...retired]: ChallengeSecrets): ChallengeKeys {
  return [keyOf(current), ...retired.map(keyOf)];
}

function keyOf(secret: string): KeyObject {
  return createSecretKey(secret, "utf8");
}

/** The id of a challenge: HMAC-SHA256 over its members as they travel, in base64url. */
export function challengeIdOf(terms: Terms, key: KeyObject): string {
  return createHmac("sha256", key).update(boundText(terms)).digest("base64url");
}

/** Returns whether one of the keys has made a challenge's id. Takes constant time for each. */
export function isIdOfKeys({ id, ...terms }: Challenge, keys: ChallengeKeys): boolean {
  const claimed = Buffer.from(id, "utf8");
  return keys
    .map((key) => {
      const made = Buffer.from(challengeIdOf(terms, key), "utf8");
      return made.length === claimed.length && timingSafeEqual(made, claimed);
    })
    .includes(true);
}

/**
 * The members that an id binds, joined in their fixed order; an absent one is empty. A header other
 * than the usual has a slot of its own.
 */
function boundText(terms: Terms): string {
  const { realm, method, intent, request, expires = "", digest = "", header, opaque = "" } = terms;
  const slot = header === undefined ? "" : `${header}|`;
  return `${realm}|${method}|${intent}|${request}|${expires}|${digest}|${slot}${opaque}`;
}
