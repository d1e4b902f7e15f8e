import { isIPv6 } from "node:net";

/** Limit of wrong keys. The right key is compared first, so it locks no operator out. */
export interface AttemptLimit {
  /** Counts a wrong attempt. `false`: one of too many from there. */
  count(address: string | undefined): boolean;
}

const maxAttempts = 10;
const windowMs = 60_000;
/** Callers choose addresses: the memory that they can occupy is bounded. */
const maxAddresses = 10_000;

/** Creates the limit. @param now milliseconds of a clock that does not go back */
export function createAttemptLimit({ now }: { now: () => number }): AttemptLimit {
  let window = 0;
  let attempts = new Map<string, number>();

  return {
    count(address) {
      const current = Math.floor(now() / windowMs);
      if (current !== window) {
        window = current;
        attempts = new Map();
      }
      const caller = callerOf(address);
      const name = attempts.size < maxAddresses || attempts.has(caller) ? caller : "others";
      const count = (attempts.get(name) ?? 0) + 1;
      attempts.set(name, count);
      return count <= maxAttempts;
    },
  };
}

/** One subscriber holds many IPv6 addresses: all of them count together, but mapped IPv4 ones. */
function callerOf(address = "unknown"): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  return isIPv6(address) && address !== "::1" ? "IPv6" : address;
}
