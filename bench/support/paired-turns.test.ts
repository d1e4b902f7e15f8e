import { expect, it } from "vitest";
import { comparePairs, takePairedTurns } from "./paired-turns.ts";

it("Turns have each side once, in an order that changes", async () => {
  const order: string[] = [];
  const measured = await takePairedTurns(["a", "b", "c"], 2, async (side) => order.push(side));
  expect(order.join("")).toBe("abccba");
  expect(measured).toEqual([
    [1, 6],
    [2, 5],
    [3, 4],
  ]);
});

it("One turn beside other work does not move the ratio of many", () => {
  const theirs = Array.from({ length: 24 }, () => 1);
  const ours = theirs.map((_, turn) => (turn === 7 ? 9 : 1.04 + (turn % 3) * 0.01));
  const { ratio, spread } = comparePairs(ours, theirs);
  expect(ratio).toBeCloseTo(1.05);
  expect(spread).toBe("24 turns, half of them 1.04 to 1.06x, ±0.4%");
});

it("An even number of turns has the mean of its two middle ratios", () => {
  const ours = [1.06, 0.964, 1.04, 0.972, 0.967, 1.09];
  expect(comparePairs(ours, [1, 1, 1, 1, 1, 1]).ratio).toBeCloseTo(1.006);
});

it("A comparison without turns is none", () => {
  expect(comparePairs([], []).ratio).toBeNaN();
});
