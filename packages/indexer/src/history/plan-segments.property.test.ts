import fc from "fast-check";
import { expect, it } from "vitest";
import type { BlockRange } from "../store/coverage.ts";
import { planSegments } from "./plan-segments.ts";

const next = 40;
const token = fc.record({
  startBlock: fc.nat(next + 5),
  covered: fc.array(fc.boolean(), { minLength: next + 5, maxLength: next + 5 }),
});

it("the history plan has each block once for exactly the tokens that miss it, in ascending order", () => {
  fc.assert(
    fc.property(fc.array(token, { minLength: 1, maxLength: 4 }), (drawn) => {
      const tokens = drawn.map(({ startBlock }, id) => ({
        id,
        startBlock,
        blockchain: "devnet",
        token: `t${id}`,
        chainId: 1,
        address: "0x" as const,
      }));
      const coverage = new Map(drawn.map(({ covered }, id) => [id, toRanges(covered)]));
      const segments = planSegments(tokens, { coverage, next });
      for (const [index, segment] of segments.entries())
        expect(segment.from).toBeGreaterThanOrEqual(segments[index - 1]?.next ?? 0);
      for (let block = 0; block < next + 5; block++) {
        const planned = segments
          .filter(({ from, next: end }) => from <= block && block < end)
          .flatMap((segment) => segment.tokens.map(({ id }) => id));
        const missing = tokens
          .filter(
            ({ id, startBlock }) =>
              block >= startBlock && block < next && !drawn[id]?.covered[block],
          )
          .map(({ id }) => id);
        expect(planned).toEqual(missing);
      }
    }),
  );
});

function toRanges(covered: readonly boolean[]): BlockRange[] {
  const ranges: BlockRange[] = [];
  for (const [block, isCovered] of covered.entries()) {
    const last = ranges.at(-1);
    if (!isCovered) continue;
    if (last?.next === block) last.next += 1;
    else ranges.push({ from: block, next: block + 1 });
  }
  return ranges;
}
