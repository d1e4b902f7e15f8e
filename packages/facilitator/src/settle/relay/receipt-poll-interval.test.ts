import { describe, expect, it } from "vitest";
import { createLookPace } from "./receipt-poll-interval.ts";

describe("the pace of looking for a transaction", () => {
  /** Sends transactions that are in a block so long after; returns when the last one was looked for. */
  function follow(afterMs: number, { times, maxMs = 500 }: { times: number; maxMs?: number }) {
    const pace = createLookPace({ maxMs });
    let looks: number[] = [];
    for (let time = 0; time < times; time += 1) {
      let now = pace.first();
      looks = [now];
      while (now < afterMs) {
        now += pace.next();
        looks.push(now);
      }
      pace.found(now);
    }
    return looks;
  }

  it("looks at once where nothing is known, and ever more seldom after that", () => {
    expect(follow(60, { times: 1 })).toEqual([2, 4, 8, 16, 32, 64]);
  });

  it("finds out when a chain is about to have it", () => {
    expect(follow(12, { times: 50 }).length).toBeLessThanOrEqual(3);
    expect(follow(3, { times: 50 }).length).toBeLessThanOrEqual(2);
  });

  it("looks soon on a slow chain as well, where a block may come at any moment", () => {
    const [first, ...more] = follow(2_000, { times: 20 });
    expect(first).toBe(16);
    expect(more.length).toBeLessThan(12);
  });

  it("waits no longer than it is told", () => {
    const looks = follow(1_000, { times: 20, maxMs: 10 });
    for (const [index, look] of looks.entries()) {
      expect(look - (looks[index - 1] ?? 0)).toBeLessThanOrEqual(10);
    }
  });
});
