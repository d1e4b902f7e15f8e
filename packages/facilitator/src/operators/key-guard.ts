import { createHash, timingSafeEqual } from "node:crypto";
import { isIPv6 } from "node:net";

/** Checks the key that a caller presents. */
export interface KeyGuard {
  /** `limited`: a wrong key, and one of too many from that address. The right one is granted. */
  check(
    address: string | undefined,
    authorization: string | undefined,
  ): "granted" | "refused" | "limited";
}

const maxFailures = 10;
const windowMs = 60_000;
/** Callers choose addresses: the memory that they can occupy is bounded. */
const maxAddresses = 10_000;

/**
 * Creates a guard. A fast hash protects a key of 256 random bits well enough, and nobody guesses one
 * at any rate: the limit is for the log, and for the work. Every key is compared
 * in constant time, so the duration reveals neither a key nor which one matches.
 */
export function createKeyGuard(options: {
  keys: readonly string[];
  /** Milliseconds, of any clock that does not go back. */
  now: () => number;
}): KeyGuard {
  const { keys, now } = options;
  const digests = keys.map(hash);
  let window = 0;
  let failures = new Map<string, number>();

  return {
    check(address, authorization) {
      // First: strangers behind the operator's proxy, or a web page on its machine, have its address.
      if (matches(digests, authorization)) return "granted";
      const current = Math.floor(now() / windowMs);
      if (current !== window) {
        window = current;
        failures = new Map();
      }
      const caller = callerOf(address);
      const name = failures.size < maxAddresses || failures.has(caller) ? caller : "others";
      const count = failures.get(name) ?? 0;
      if (count >= maxFailures) return "limited";
      failures.set(name, count + 1);
      return "refused";
    },
  };
}

/** One subscriber holds many IPv6 addresses: all of them count together, but mapped IPv4 ones. */
function callerOf(address = "unknown"): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  return isIPv6(address) && address !== "::1" ? "IPv6" : address;
}

function matches(digests: readonly Buffer[], authorization = ""): boolean {
  const presented = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(authorization)?.[1];
  if (presented === undefined) return false;
  const digest = hash(presented);
  let isFound = false;
  for (const each of digests) if (timingSafeEqual(digest, each)) isFound = true;
  return isFound;
}

function hash(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}
