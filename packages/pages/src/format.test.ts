import { describe, expect, it } from "vitest";
import {
  formatAge,
  formatAmount,
  formatDecimal,
  formatDuration,
  shorten,
  spellAmount,
} from "./format.ts";

describe("formatAmount", () => {
  it.each([
    ["0", 6, "0.00"],
    ["1", 6, "0.000001"],
    ["10000", 6, "0.01"],
    ["1500000", 6, "1.50"],
    ["1234567890000", 6, "1,234,567.89"],
    ["-2500", 6, "−0.0025"],
    ["7", 0, "7"],
    ["1234", 0, "1,234"],
    ["5", 1, "0.5"],
    ["999999999999999999999999999999", 18, "999,999,999,999.999999999999999999"],
  ])("prints %s with %i decimals as %s", (amount, decimals, shown) => {
    expect(formatAmount(amount, decimals)).toBe(shown);
  });

  it("refuses a fraction", () => {
    expect(() => formatAmount("1.5", 6)).toThrow(SyntaxError);
  });
});

describe("formatAge", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  it.each([
    [0, "now"],
    [-59_700, "1 min. ago"],
    [-30_000, "30 sec. ago"],
    [-3_600_000, "1 hr. ago"],
    [-86_400_000, "yesterday"],
    [7_200_000, "in 2 hr."],
    [-400 * 86_400_000, "last yr."],
  ])("says %i ms as %s", (offset, said) => {
    expect(formatAge(now + offset, now)).toBe(said);
  });
});

describe("shorten", () => {
  it("leaves out the middle of an address, and nothing of a short text", () => {
    expect(shorten("0x1234567890123456789012345678901234567890")).toBe("0x1234…7890");
    expect(shorten("eip155:8453")).toBe("eip155:8453");
  });
});

describe("formatDuration", () => {
  it.each([
    [0.00084, "840 µs"],
    [0.012, "12 ms"],
    [3.42, "3.4 s"],
    [240.4, "240 s"],
  ])("prints %d s as %s", (seconds, shown) => {
    expect(formatDuration(seconds)).toBe(shown);
  });
});

describe("formatDecimal", () => {
  it.each([
    ["1234.5", "1,234.50"],
    ["0.000001", "0.000001"],
    ["-3", "−3.00"],
    ["0.010000", "0.01"],
  ])("prints %s as %s", (amount, shown) => {
    expect(formatDecimal(amount)).toBe(shown);
  });
});

describe("spellAmount", () => {
  it.each([
    ["0", "zero"],
    ["0.01", "zero point zero one"],
    ["1.50", "one point five"],
    ["21", "twenty-one"],
    ["115", "one hundred fifteen"],
    ["1000", "one thousand"],
    ["1002003.04", "one million two thousand three point zero four"],
    ["1000000000000000000", "1000000000000000000"],
  ])("spells %s as %s", (amount, spelled) => {
    expect(spellAmount(amount)).toBe(spelled);
  });
});
