import { describe, expect, it } from "vitest";
import { createMakeAhead } from "./make-ahead.ts";

/** Notes the number of each value, and the key that it was made for. */
function createMaker() {
  let count = 0;
  const make = (key: number) => {
    count += 1;
    return { key, number: count };
  };
  return { make, count: () => count };
}

describe("values that are made ahead", () => {
  it("are given out once each, for the key that was asked for", () => {
    const take = createMakeAhead<number, { key: number; number: number }>();
    const { make } = createMaker();
    const keys = Array.from({ length: 1_000 }, (_, index) => Math.floor(index / 300));
    const taken = keys.map((key) => take(make, key));
    expect(taken.map(({ key }) => key)).toEqual(keys);
    expect(new Set(taken.map(({ number }) => number)).size).toBe(taken.length);
  });

  it.each([1, 2, 3, 4, 5, 40, 1_000])(
    "are at most twice as many as %i that were asked for",
    (asked) => {
      const take = createMakeAhead<number, object>();
      const { make, count } = createMaker();
      for (let index = 0; index < asked; index += 1) take(make, 1);
      expect(count()).toBeGreaterThanOrEqual(asked);
      expect(count()).toBeLessThan(2 * asked + 1);
    },
  );

  it("are made one by one where another function, or another key, is asked each time", () => {
    const take = createMakeAhead<number, object>();
    const [one, other] = [createMaker(), createMaker()];
    for (let index = 0; index < 100; index += 1) {
      take(one.make, index);
      take(other.make, index);
    }
    expect([one.count(), other.count()]).toEqual([100, 100]);
  });
});
