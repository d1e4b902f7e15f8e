import { describe, expect, it } from "vitest";
import { createLookPace } from "./receipt-poll-interval.ts";

describe("the receipt poll interval", () => {
  /** Sends transactions that are mined after this time; returns the time of the last poll. */
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

  it("is zero for a new transaction, and grows with its age", () => {
    expect(follow(60, { times: 1 })).toEqual([2, 4, 8, 16, 32, 64]);
  });

  it("adapts to the block time of a chain, for fewer polls", () => {
    expect(follow(12, { times: 50 }).length).toBeLessThanOrEqual(3);
    expect(follow(3, { times: 50 }).length).toBeLessThanOrEqual(2);
  });

  it("starts short on a slow chain as well, where a block may come at any moment", () => {
    const [first, ...more] = follow(2_000, { times: 20 });
    expect(first).toBe(16);
    expect(more.length).toBeLessThan(12);
  });

  it("stays within its maximum", () => {
    const looks = follow(1_000, { times: 20, maxMs: 10 });
    for (const [index, look] of looks.entries()) {
      expect(look - (looks[index - 1] ?? 0)).toBeLessThanOrEqual(10);
    }
  });
});
