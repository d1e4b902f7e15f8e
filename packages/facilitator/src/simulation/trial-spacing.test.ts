import { expect, it } from "vitest";
import { trialSpacing } from "./trial-spacing.ts";

it("a process alone waits for no time between two trials", () => {
  expect(trialSpacing({ processes: 1, blockTimeMs: 12_000 })).toBe(0);
  expect(trialSpacing({ processes: 0, blockTimeMs: 12_000 })).toBe(0);
});

it("processes of one ledger ask together about as often as one", () => {
  expect(trialSpacing({ processes: 2, blockTimeMs: 1_000 })).toBe(80);
});

it("the time between two trials is short beside a block, and for a buyer", () => {
  expect(trialSpacing({ processes: 2, blockTimeMs: 250 })).toBe(31.25);
  expect(trialSpacing({ processes: 50, blockTimeMs: 12_000 })).toBe(100);
});
