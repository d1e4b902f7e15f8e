import { createHmac, timingSafeEqual } from "node:crypto";
import type { Challenge } from "@coinslot/protocol";

/** A challenge before its id is known. */
export type Terms = Omit<Challenge, "id">;

/** The id of a challenge: HMAC-SHA256 over its members as they travel, in base64url. */
export function challengeIdOf(terms: Terms, secret: string): string {
  return createHmac("sha256", secret).update(boundText(terms)).digest("base64url");
}

/** Returns whether one of the secrets has made a challenge's id. Takes constant time for each. */
export function isIdOfSecrets({ id, ...terms }: Challenge, secrets: readonly string[]): boolean {
  const claimed = Buffer.from(id, "utf8");
  return secrets
    .map((secret) => {
      const made = Buffer.from(challengeIdOf(terms, secret), "utf8");
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
  const slots = [realm, method, intent, request, expires, digest];
  return [...slots, ...(header === undefined ? [] : [header]), opaque].join("|");
}
