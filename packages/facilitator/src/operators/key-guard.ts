import { createAttemptLimit } from "./attempt-limit.ts";
import { digestOf, isDigestOf } from "./secret-digest.ts";

/** Checks the key that a caller presents. */
export interface KeyGuard {
  /** `limited`: a wrong key, and one of too many from that address. The right one is granted. */
  check(
    address: string | undefined,
    authorization: string | undefined,
  ): "granted" | "refused" | "limited";
}

/**
 * Creates a guard. A fast hash protects a key of 256 random bits, which no number of attempts
 * finds: the limit is for the log, and for the work. Every key is compared in constant time, so the
 * duration reveals neither a key nor which one matches.
 */
export function createKeyGuard(options: {
  keys: readonly string[];
  /** Milliseconds, of any clock that does not go back. */
  now: () => number;
}): KeyGuard {
  const { keys, now } = options;
  const digests = keys.map(digestOf);
  const limit = createAttemptLimit({ now });

  return {
    check(address, authorization) {
      // First: strangers behind the operator's proxy, or a web page on its machine, have its
      // address.
      if (matches(digests, authorization)) return "granted";
      return limit.count(address) ? "refused" : "limited";
    },
  };
}

function matches(digests: readonly Buffer[], authorization = ""): boolean {
  const presented = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(authorization)?.[1];
  if (presented === undefined) return false;
  let isFound = false;
  for (const digest of digests) if (isDigestOf(digest, presented)) isFound = true;
  return isFound;
}

/**
 * Name of a presented key in the audit log: the first eight digits of its SHA-256. They name
 * the key, and make no guess easier.
 */
export function keyNameOf(authorization = ""): string {
  const presented = /^Bearer (.+)$/i.exec(authorization)?.[1] ?? "";
  return `key ${digestOf(presented).toString("hex").slice(0, 8)}`;
}
