import type { Io } from "../io.ts";

/** Least time between two texts: a terminal is slower than a page. */
const pauseMs = 200;

/** A text that follows a long run, on a terminal. */
export function createProgress(io: Pick<Io, "showWaiting" | "now">) {
  let stop: (() => void) | undefined;
  let shownAt = Number.NEGATIVE_INFINITY;
  return {
    show(words: string): void {
      if (io.now() - shownAt < pauseMs) return;
      shownAt = io.now();
      stop?.();
      stop = io.showWaiting(words);
    },
    end(): void {
      stop?.();
      stop = undefined;
    },
  };
}
