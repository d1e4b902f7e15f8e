import { type AuthorizationId, authorizationKey } from "@coinslot/protocol";

/** Bounds the copies of a payment's kept answer that are on their way at once. */
export interface ReplayLimit {
  /** Sends a copy, unless too many are on their way. Returns whether it was sent. */
  send(id: AuthorizationId, deliver: () => Promise<void>): Promise<boolean>;
}

/**
 * A buyer whose connection is lost comes again before the server notices the loss, and more than
 * once.
 */
const maxCopies = 4;

/**
 * Creates a limit for this process. A copy is held until its reader has taken it, and one payment
 * could ask for any number of them.
 */
export function createReplayLimit(): ReplayLimit {
  /** Copies on their way, by `authorizationKey`. */
  const copies = new Map<string, number>();

  function change(key: string, by: 1 | -1): void {
    const count = (copies.get(key) ?? 0) + by;
    if (count === 0) copies.delete(key);
    else copies.set(key, count);
  }

  return {
    async send(id, deliver) {
      const key = authorizationKey(id);
      if ((copies.get(key) ?? 0) >= maxCopies) return false;
      change(key, 1);
      try {
        await deliver();
      } finally {
        change(key, -1);
      }
      return true;
    },
  };
}
