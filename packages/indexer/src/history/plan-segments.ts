import type { BlockRange } from "../store/coverage.ts";
import type { KnownToken } from "../store/known-token.ts";

/** Blocks that the same tokens miss. */
export interface Segment extends BlockRange {
  tokens: readonly KnownToken[];
}

/** The blocks that some tokens miss, up to but not including `next`. */
export function planSegments(
  tokens: readonly KnownToken[],
  { coverage, next }: { coverage: ReadonlyMap<number, readonly BlockRange[]>; next: number },
): Segment[] {
  return toSegments(
    tokens.map((token) => ({
      token,
      ranges: findGaps(coverage.get(token.id) ?? [], { from: token.startBlock, next }),
    })),
  );
}

/**
 * The ranges of some tokens in ascending order, such that each block is in one segment at most. So
 * each block is asked for once, with all the tokens that want it.
 */
export function toSegments(
  wanted: readonly { token: KnownToken; ranges: readonly BlockRange[] }[],
): Segment[] {
  const borders = new Set(
    wanted.flatMap(({ ranges }) => ranges.flatMap((range) => [range.from, range.next])),
  );
  const sorted = [...borders].sort((a, b) => a - b);
  return sorted.flatMap((from, index): Segment[] => {
    const end = sorted[index + 1];
    const those = wanted.filter(({ ranges }) =>
      ranges.some((range) => range.from <= from && from < range.next),
    );
    if (end === undefined || those.length === 0) return [];
    return [{ from, next: end, tokens: those.map(({ token }) => token) }];
  });
}

/** The parts of `whole` that are in none of the ranges, which are disjoint and ascending. */
export function findGaps(ranges: readonly BlockRange[], whole: BlockRange): BlockRange[] {
  const gaps: BlockRange[] = [];
  let from = whole.from;
  for (const range of ranges) {
    if (range.from > from) gaps.push({ from, next: Math.min(range.from, whole.next) });
    from = Math.max(from, range.next);
  }
  if (from < whole.next) gaps.push({ from, next: whole.next });
  return gaps.filter((gap) => gap.from < gap.next);
}
