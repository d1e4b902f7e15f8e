import { describe, expect, it } from "vitest";
import { type Figure, formatJson, formatTable, verdictOf } from "./figure.ts";

const paid: Figure = {
  scenario: "paid GET, 128 at once",
  ours: { value: 1204.4, unit: "/s" },
  reference: { value: 125.2, unit: "/s" },
  ratio: { value: 9.62, turns: [10.04, 9.21] },
  goal: { of: "ratio", atLeast: 10 },
};
const memory: Figure = {
  scenario: "memory",
  ours: { value: 232, unit: "MB" },
  goal: { of: "ours", atMost: 250 },
};

describe("the verdict of a row", () => {
  it("is missed below a least ratio and reached at it", () => {
    expect(verdictOf(paid)).toBe("missed");
    expect(verdictOf({ ...paid, ratio: { value: 10 } })).toBe("reached");
  });

  it("is reached up to a greatest measure and missed above it", () => {
    expect(verdictOf(memory)).toBe("reached");
    expect(verdictOf({ ...memory, ours: { value: 250.1, unit: "MB" } })).toBe("missed");
  });

  it("is missed where the goal is a ratio that was not measured", () => {
    const { ratio: _, ...unmeasured } = paid;
    expect(verdictOf(unmeasured)).toBe("missed");
  });

  it("is absent where there is no goal", () => {
    const { goal: _, ...aimless } = memory;
    expect(verdictOf(aimless)).toBeUndefined();
  });
});

it("prints each row as JSON with its figures, ratio, goal and verdict", () => {
  expect(JSON.parse(formatJson([paid]))).toEqual([{ ...paid, verdict: "missed" }]);
});

it("prints the same rows as a table of aligned columns", () => {
  expect(formatTable([paid, memory]).split("\n")).toEqual([
    "scenario               ours      reference  ratio             goal       verdict",
    "paid GET, 128 at once  1,204 /s  125 /s     9.62x (10, 9.21)  >= 10x     missed",
    "memory                 232 MB                                 <= 250 MB  reached",
  ]);
});
