import { findGaps, type Segment, toSegments } from "../history/plan-segments.ts";
import type { BlockRange } from "../store/coverage.ts";
import type { KnownToken } from "../store/known-token.ts";

/** By the token's id. */
type Coverage = ReadonlyMap<number, readonly BlockRange[]>;

/**
 * The blocks of some tokens, up to but not including `next`, that are indexed and were read once.
 */
export function planVerification(
  tokens: readonly KnownToken[],
  { indexed, verified, next }: { indexed: Coverage; verified: Coverage; next: number },
): Segment[] {
  return toSegments(
    tokens.map((token) => ({
      token,
      ranges: (indexed.get(token.id) ?? []).flatMap((range) =>
        findGaps(verified.get(token.id) ?? [], {
          from: Math.max(range.from, token.startBlock),
          next: Math.min(range.next, next),
        }),
      ),
    })),
  );
}
