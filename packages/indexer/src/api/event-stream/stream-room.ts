import { ApiError } from "../api-error.ts";

/** Maximum numbers of open streams. */
export interface StreamBounds {
  total: number;
  perCaller: number;
}

/** Counts open streams. */
export interface StreamRoom {
  /** Takes a place; returns a function that frees it. @throws ApiError 429 if there is none */
  enter(caller: string): () => void;
}

const retryAfterSeconds = 10;

/**
 * Keeps the number of open streams in bounds, since each is a connection and a reader of the
 * database.
 */
export function createStreamRoom({ total, perCaller }: StreamBounds): StreamRoom {
  const open = new Map<string, number>();
  let all = 0;

  return {
    enter(caller) {
      const own = open.get(caller) ?? 0;
      if (own >= perCaller) {
        const message = `${perCaller} streams are open with this key. Close one first.`;
        throw new ApiError(429, message, { retryAfterSeconds });
      }
      if (all >= total) {
        const message = "No more streams can be opened at the moment.";
        throw new ApiError(429, message, { retryAfterSeconds });
      }
      open.set(caller, own + 1);
      all += 1;
      let hasLeft = false;
      return function leave() {
        if (hasLeft) return;
        hasLeft = true;
        all -= 1;
        const left = (open.get(caller) ?? 1) - 1;
        if (left === 0) open.delete(caller);
        else open.set(caller, left);
      };
    },
  };
}
