import { expect, it } from "vitest";
import { createPacedTimes } from "./paced-times.ts";

function paceOf(blockMs: number | undefined) {
  return { saw: () => undefined, blockMs: () => blockMs, dueAt: () => undefined };
}

function all(blockMs: number | undefined, configured = {}) {
  const times = createPacedTimes(paceOf(blockMs), configured);
  return [times.resendMs(), times.replaceMs(), times.loseMs(), times.settleTimeoutMs(0)];
}

it("the times of a quick chain, and of one whose pace is unknown, are constant", () => {
  for (const blockMs of [undefined, 10, 250, 1_000]) {
    expect(all(blockMs)).toEqual([2_000, 8_000, 15_000, 30_000]);
  }
});

it("a transaction is neither replaced nor given up before blocks of 12 s could take it", () => {
  expect(all(12_000)).toEqual([18_000, 36_000, 36_000, 48_000]);
});

it("the times of blocks that are hours apart are a minute", () => {
  expect(all(3_600_000)).toEqual([60_000, 60_000, 60_000, 100_000]);
});

it("the wait for an outcome holds the blocks on top of a payment's own, and has a bound", () => {
  const times = createPacedTimes(paceOf(12_000), {});
  expect(times.settleTimeoutMs(2)).toBe(72_000);
  expect(times.settleTimeoutMs(64)).toBe(100_000);
});

it("configured times do not follow the pace", () => {
  const configured = { resendMs: 1, replaceMs: 2, loseMs: 3, settleTimeoutMs: 4 };
  expect(all(12_000, configured)).toEqual([1, 2, 3, 4]);
});
