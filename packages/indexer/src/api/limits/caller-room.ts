import type { Caller } from "../access.ts";
import { ApiError } from "../api-error.ts";

/** Maximum numbers of answers that last, such as open streams. */
export interface RoomBounds {
  total: number;
  /** Of one key, or of one address where there are no keys. */
  perCaller: number;
  /** Of all keys of one owner. Default: four times as many as of one key. */
  perOwner?: number;
}

/** Counts answers that last as long as their reader likes. */
export interface CallerRoom {
  /** Takes a place; returns a function that frees it. @throws ApiError 429 if there is none */
  enter(caller: Pick<Caller, "name" | "key">): () => void;
}

const retryAfterSeconds = 10;

/**
 * Keeps the number of lasting answers in bounds, since each is a connection and a reader of the
 * database. An owner makes itself keys, so its keys have a bound together.
 */
export function createCallerRoom(
  /** Plural name of the answers. */
  noun: string,
  { total, perCaller, perOwner = 4 * perCaller }: RoomBounds,
): CallerRoom {
  const open = new Map<string, number>();
  const all = "all";

  function add(name: string, change: 1 | -1): void {
    const count = (open.get(name) ?? 0) + change;
    if (count === 0) open.delete(name);
    else open.set(name, count);
  }

  return {
    enter({ name, key }) {
      const bounds = [
        { name: `caller ${name}`, max: perCaller, owner: "with this key" },
        ...(key ? [{ name: `owner ${key.owner}`, max: perOwner, owner: "with your keys" }] : []),
        { name: all, max: total, owner: undefined },
      ];
      const full = bounds.find((bound) => (open.get(bound.name) ?? 0) >= bound.max);
      if (full !== undefined) {
        const message =
          full.owner === undefined
            ? `No more ${noun} can be opened at the moment.`
            : `${full.max} ${noun} are open ${full.owner}. Close one first.`;
        throw new ApiError(429, message, { retryAfterSeconds });
      }
      for (const bound of bounds) add(bound.name, 1);
      let hasLeft = false;
      return function leave() {
        if (hasLeft) return;
        hasLeft = true;
        for (const bound of bounds) add(bound.name, -1);
      };
    },
  };
}
