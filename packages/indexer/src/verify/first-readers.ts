import type { Segment } from "../history/plan-segments.ts";
import type { BlockRange } from "../store/coverage.ts";
import type { KnownToken } from "../store/known-token.ts";

/**
 * Ranges of a token whose first readers are remembered: one for each change of the endpoint. Beyond
 * that the lowest are forgotten, which are verified first.
 */
const maxRanges = 100_000;

interface Reading extends BlockRange {
  endpoint: number;
}

/** Endpoints by which this process has read the blocks of each token for the first time. */
export interface FirstReaders {
  note(read: Segment, endpoint: number): void;
  /**
   * The first reader of a block, and the block before which it is the same one. `undefined`:
   * another process has read it, or too much has been read since.
   */
  of(token: KnownToken, block: number): { endpoint: number | undefined; next: number };
  /**
   * Each token by itself, where their first readers are not the same: one that was added later is
   * read by another endpoint.
   */
  split(segment: Segment): Segment[];
  /**
   * Consecutive rounds of second readings in which no other endpoint has answered, or none had the
   * blocks.
   */
  rounds: { silent: number; behind: number };
}

/** Memory of one writer. A second reading asks another endpoint than the first one did. */
export function createFirstReaders(): FirstReaders {
  /** By token: disjoint and ascending. */
  const notes = new Map<number, Reading[]>();

  function of(token: KnownToken, block: number) {
    const own = notes.get(token.id) ?? [];
    const reading = own[findFirst(own, block)];
    if (reading === undefined) return { endpoint: undefined, next: Number.POSITIVE_INFINITY };
    if (reading.from > block) return { endpoint: undefined, next: reading.from };
    return { endpoint: reading.endpoint, next: reading.next };
  }

  /** The first readers along a range, as one text. */
  function along(token: KnownToken, { from, next }: BlockRange): string {
    const changes: string[] = [];
    let before: number | undefined | null = null;
    for (let block = from; block < next; ) {
      const reader = of(token, block);
      if (reader.endpoint !== before) changes.push(`${block} ${reader.endpoint}`);
      before = reader.endpoint;
      block = reader.next;
    }
    return changes.join();
  }

  return {
    rounds: { silent: 0, behind: 0 },
    of,
    note({ tokens, from, next }, endpoint) {
      for (const { id } of tokens) {
        const own = notes.get(id) ?? [];
        notes.set(id, own);
        insert(own, { from, next, endpoint });
        if (own.length > maxRanges) own.shift();
      }
    },
    split(segment) {
      const { tokens } = segment;
      if (tokens.length === 1) return [segment];
      const isSame = new Set(tokens.map((token) => along(token, segment))).size <= 1;
      return isSame ? [segment] : tokens.map((token) => ({ ...segment, tokens: [token] }));
    },
  };
}

/** Index of the first range that ends above a block. */
function findFirst(ranges: readonly Reading[], block: number): number {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ranges[middle]?.next ?? 0) > block) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Replaces the parts of ranges that a new one overlaps, and joins it with equal neighbours. */
function insert(ranges: Reading[], reading: Reading): void {
  const { endpoint } = reading;
  let { from, next } = reading;
  const first = findFirst(ranges, from - 1);
  let end = first;
  const rest: Reading[] = [];
  for (let old = ranges[end]; old !== undefined && old.from <= next; old = ranges[++end]) {
    if (old.endpoint === endpoint) {
      from = Math.min(from, old.from);
      next = Math.max(next, old.next);
      continue;
    }
    if (old.from < from) rest.push({ ...old, next: Math.min(old.next, from) });
    if (old.next > next) rest.push({ ...old, from: Math.max(old.from, next) });
  }
  const all = [...rest, { from, next, endpoint }].sort((a, b) => a.from - b.from);
  ranges.splice(first, end - first, ...all);
}
