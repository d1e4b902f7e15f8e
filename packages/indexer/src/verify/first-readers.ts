import type { BlockRange } from "../store/coverage.ts";

/** Ranges whose first readers are remembered: one for each change of the endpoint. */
const maxRanges = 1_000;

/** Endpoints by which this process has read blocks for the first time. */
export interface FirstReaders {
  note(range: BlockRange, endpoint: number): void;
  /**
   * The first reader of a block, and the block before which it is the same one. `undefined`:
   * another process has read it, or too much has been read since.
   */
  of(block: number): { endpoint: number | undefined; next: number };
  /**
   * Consecutive rounds of second readings in which no other endpoint has answered, or none had the
   * blocks.
   */
  rounds: { silent: number; behind: number };
}

/** Memory of one writer. A second reading asks another endpoint than the first one did. */
export function createFirstReaders(): FirstReaders {
  /** The newest last: it holds for blocks that were read again. */
  const notes: (BlockRange & { endpoint: number })[] = [];

  return {
    rounds: { silent: 0, behind: 0 },
    note({ from, next }, endpoint) {
      const last = notes.at(-1);
      if (last?.endpoint === endpoint && last.next === from) last.next = next;
      else notes.push({ from, next, endpoint });
      if (notes.length > maxRanges) notes.shift();
    },
    of(block) {
      let end = Number.POSITIVE_INFINITY;
      for (const { from, next, endpoint } of notes.toReversed()) {
        if (block >= from && block < next) return { endpoint, next: Math.min(end, next) };
        if (from > block) end = Math.min(end, from);
      }
      return { endpoint: undefined, next: end };
    },
  };
}
