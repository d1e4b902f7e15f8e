import { describe, expect, it } from "vitest";
import { maxRetryDelayMs, retryDelayMs } from "./retry-delays.ts";

function allDelays(random: number): number[] {
  const delays: number[] = [];
  for (let attempts = 1; ; attempts++) {
    const delay = retryDelayMs(attempts, random);
    if (delay === undefined) return delays;
    delays.push(delay);
  }
}

describe("the waits between attempts", () => {
  it("take three days in all, a fifth more or less", () => {
    const days = (random: number) =>
      allDelays(random).reduce((sum, each) => sum + each, 0) / 86_400_000;
    expect(days(0.5)).toBeCloseTo(3, 0);
    expect(days(0)).toBeGreaterThan(2.3);
    expect(days(1)).toBeLessThan(3.7);
  });

  it("never shrink, and have a longest one", () => {
    const delays = allDelays(0.5);
    expect(delays).toEqual(delays.toSorted((a, b) => a - b));
    expect(Math.max(...allDelays(1))).toBe(maxRetryDelayMs);
  });
});
