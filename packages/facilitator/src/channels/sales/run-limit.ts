import type { FreeRunLimit } from "../../ledger/ledger-limits.ts";

/** Work for a caller that came to nothing, such as handlers that ran and were not paid for. */
export interface RunLimit {
  count(key: string): void;
  /** Work that was counted in advance has come to something. */
  giveBack(key: string): void;
  /** The caller has paid for work. */
  paid(key: string): void;
  /** A payment was taken back. */
  unpaid(key: string): void;
  /** Milliseconds until the caller may come again; `undefined`: it may now. */
  limitOf(key: string): number | undefined;
}

interface Window {
  free: number;
  paid: number;
  endsAt: number;
}

/** Callers that are remembered, at most. */
const maxCallers = 10_000;
const defaultShareOfPaid = 0.5;

/**
 * Counts in windows that begin with the first free run, of this process alone. The oldest is
 * forgotten where there are too many.
 */
export function createRunLimit(options: {
  limit: FreeRunLimit;
  /** Unix milliseconds. */
  now: () => number;
}): RunLimit {
  const { limit, now } = options;
  const { shareOfPaid = defaultShareOfPaid } = limit;
  const windows = new Map<string, Window>();

  function windowOf(key: string): Window | undefined {
    const found = windows.get(key);
    if (found === undefined || found.endsAt > now()) return found;
    windows.delete(key);
    return undefined;
  }

  return {
    count(key) {
      const window = windowOf(key) ?? { free: 0, paid: 0, endsAt: now() + limit.windowMs };
      window.free += 1;
      windows.set(key, window);
      const [oldest] = windows.keys();
      if (windows.size > maxCallers && oldest !== undefined) windows.delete(oldest);
    },
    giveBack(key) {
      const window = windowOf(key);
      if (window !== undefined) window.free = Math.max(0, window.free - 1);
    },
    paid(key) {
      const window = windowOf(key);
      if (window !== undefined) window.paid += 1;
    },
    unpaid(key) {
      const window = windowOf(key);
      if (window !== undefined) window.paid = Math.max(0, window.paid - 1);
    },
    limitOf(key) {
      const window = windowOf(key);
      if (window === undefined) return undefined;
      const allowed = Math.max(limit.count, Math.floor(window.paid * shareOfPaid));
      return window.free < allowed ? undefined : window.endsAt - now();
    },
  };
}
