import { setImmediate } from "node:timers/promises";

/** Turns of long work, between which other requests of the process get theirs. */
export interface Slices {
  /** Returns whether the turn has taken its time. */
  isOver(): boolean;
  /** Resolves at the begin of the next turn. */
  next(): Promise<void>;
}

/** The garbage that a turn leaves is collected beside it. */
const sliceMs = 4;

/** Slices of long work; the first one begins now. */
export function createSlices(now: () => number = () => performance.now()): Slices {
  let start = now();
  return {
    isOver: () => now() - start >= sliceMs,
    async next() {
      await setImmediate();
      start = now();
    },
  };
}
