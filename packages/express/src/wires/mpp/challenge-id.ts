import { createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto";
import type { Challenge } from "@coinslot/protocol";
import type { ChallengeSecrets } from "../../mpp-options.ts";
import { prepareMac, type WriteMac } from "./prepare-mac.ts";

/** A challenge before its id is known. */
type Terms = Omit<Challenge, "id">;

/** The keys of secrets. */
export interface ChallengeKeys {
  /** Makes ids. */
  current: KeyObject;
  /** Each proves ids: HMAC-SHA256, in base64url. */
  macs: readonly WriteMac[];
}

/** Longest bound text, in bytes: its members are of one credential, which is read up to 16 KiB. */
const maxBound = 16_384;

/** Makes keys of secrets once, and not for each challenge. The first makes ids, all prove them. */
export function keysOf(secrets: ChallengeSecrets): ChallengeKeys {
  const [current, ...retired] = secrets.map((secret) => createSecretKey(secret, "utf8"));
  if (current === undefined) throw new Error("Challenges need a secret");
  const macs = [current, ...retired].map((key) => {
    return prepareMac(key, { start: "", maxRest: maxBound });
  });
  return { current, macs };
}

/** Returns whether one of the keys has made a challenge's id. Takes constant time for each. */
export function isIdOfKeys({ id, ...terms }: Challenge, { macs }: ChallengeKeys): boolean {
  // The bound text would be that of another challenge, with the header's name in its own slot.
  if (terms.digest?.includes("|")) return false;
  const claimed = Buffer.from(id, "utf8");
  const bound = startOf(terms) + restOf(terms);
  return macs
    .map((write) => {
      const made = Buffer.from(write(bound), "utf8");
      return made.length === claimed.length && timingSafeEqual(made, claimed);
    })
    .includes(true);
}

/** Writes the id of a challenge of the prepared terms. */
export type WriteChallengeId = (fresh: { expires: string; opaque: string }) => string;

/** Longest fresh members: an instant, an `opaque` text, and another header's name. */
const maxFresh = 512;

/** Prepares the ids of challenges that differ in their fresh members alone. */
export function prepareChallengeId(
  terms: Omit<Terms, "expires" | "opaque">,
  key: KeyObject,
): WriteChallengeId {
  const { digest, header } = terms;
  const write = prepareMac(key, { start: startOf(terms), maxRest: maxFresh });
  return ({ expires, opaque }) => write(restOf({ expires, digest, header, opaque }));
}

/** The members that an id binds, joined in their fixed order. */
function startOf({ realm, method, intent, request }: Omit<Terms, "expires" | "opaque">): string {
  return `${realm}|${method}|${intent}|${request}|`;
}

/** An absent one is empty. A header other than the usual has a slot of its own. */
function restOf({ expires = "", digest = "", header, opaque = "" }: Partial<Terms>): string {
  const slot = header === undefined ? "" : `${header}|`;
  return `${expires}|${digest}|${slot}${opaque}`;
}
