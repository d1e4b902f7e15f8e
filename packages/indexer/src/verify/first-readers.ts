import type { Segment } from "../history/plan-segments.ts";
import type { BlockRange } from "../store/coverage.ts";
import type { KnownToken } from "../store/known-token.ts";

/** Ranges of a token whose first readers are remembered: one for each change of the endpoint. */
const maxRanges = 1_000;

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
  /** By token; the newest last: it holds for blocks that were read again. */
  const notes = new Map<number, (BlockRange & { endpoint: number })[]>();

  function of(token: KnownToken, block: number) {
    let end = Number.POSITIVE_INFINITY;
    for (const { from, next, endpoint } of (notes.get(token.id) ?? []).toReversed()) {
      if (block >= from && block < next) return { endpoint, next: Math.min(end, next) };
      if (from > block) end = Math.min(end, from);
    }
    return { endpoint: undefined, next: end };
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
        const last = own.at(-1);
        if (last?.endpoint === endpoint && last.next === from) last.next = next;
        else own.push({ from, next, endpoint });
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
