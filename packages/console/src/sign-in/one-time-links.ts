import { randomBytes } from "node:crypto";
import { digestOf } from "@coinslot/facilitator";

/**
 * Links that sign one person in, once. They are bound to this console, and end with its process.
 */
export interface OneTimeLinks {
  /** Draws a link's token. `undefined` where one was drawn a moment ago: that one is to be used. */
  issue(): string | undefined;
  /** Uses the link up. `false`: unknown, used or expired. */
  redeem(token: string): boolean;
}

/** Life of a link. */
export const linkLifeMs = 10 * 60_000;
/** A stranger who asks for links fills no log, and takes none from the operator: they add up. */
const pauseMs = 10_000;

/** Creates the links. @param now milliseconds of a clock that does not go back */
export function createOneTimeLinks({ now }: { now: () => number }): OneTimeLinks {
  const expiries = new Map<string, number>();
  let lastAt = -Infinity;

  return {
    issue() {
      if (now() - lastAt < pauseMs) return undefined;
      lastAt = now();
      for (const [digest, expiresAt] of expiries) if (expiresAt <= now()) expiries.delete(digest);
      const token = randomBytes(32).toString("base64url");
      expiries.set(nameOf(token), now() + linkLifeMs);
      return token;
    },
    redeem(token) {
      const name = nameOf(token);
      const expiresAt = expiries.get(name);
      // Deleted before anything else is done: the second of two requests finds nothing.
      expiries.delete(name);
      return expiresAt !== undefined && now() < expiresAt;
    },
  };
}

function nameOf(token: string): string {
  return digestOf(token).toString("base64");
}
