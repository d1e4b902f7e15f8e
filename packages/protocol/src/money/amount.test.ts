import { describe, expect, test } from "vitest";
import { amountSchema, formatMoney, isAmount, parseMoney } from "./amount.ts";

const maxUint256 = 2n ** 256n - 1n;

describe("an amount on the wire", () => {
  test.each(["0", "1", "10000", maxUint256.toString()])("is %s", (text) => {
    expect(isAmount(text)).toBe(true);
    expect(amountSchema.safeParse(text).success).toBe(true);
  });

  test.each([
    "",
    "1e3",
    "0x10",
    "-1",
    "-0",
    "+1",
    "01",
    "00",
    (maxUint256 + 1n).toString(),
    "9".repeat(78),
    "1".repeat(10_000),
    "1.0",
    "0.5",
    " 1",
    "1 ",
    "1\n",
    "1_000",
    "1,000",
    "١",
    "NaN",
    "1n",
  ])("is not %j", (text) => {
    expect(isAmount(text)).toBe(false);
    expect(amountSchema.safeParse(text).success).toBe(false);
  });

  test.each([1, 1n, null, true, ["1"], undefined])("is a string, never %s", (value) => {
    expect(amountSchema.safeParse(value).success).toBe(false);
  });
});

describe("a price", () => {
  test.each<[string, number, bigint]>([
    ["$0.001", 6, 1000n],
    ["0.001", 6, 1000n],
    [" $1 ", 6, 1_000_000n],
    ["1.100000000", 6, 1_100_000n],
    ["0.000001", 6, 1n],
    ["0", 6, 0n],
    ["5", 0, 5n],
    ["5.0", 0, 5n],
    ["1", 18, 10n ** 18n],
  ])("%j with %i decimals is %s", (text, decimals, amount) => {
    expect(parseMoney(text, decimals)).toBe(amount);
  });

  test.each<[string, number]>([
    ["0.0000001", 6],
    ["0.5", 0],
    ["-1", 6],
    ["1e3", 6],
    ["0x10", 6],
    ["01", 6],
    [".5", 6],
    ["1.", 6],
    ["$", 6],
    ["$$1", 6],
    ["1$", 6],
    ["1,5", 6],
    ["1 000", 6],
    ["", 6],
    ["free", 6],
    [maxUint256.toString(), 1],
    ["9".repeat(100_000), 6],
  ])("%j with %i decimals is refused, never rounded or guessed", (text, decimals) => {
    expect(parseMoney(text, decimals)).toBeUndefined();
  });
});

test.each<[bigint, number, string]>([
  [1500n, 6, "0.0015"],
  [0n, 6, "0"],
  [1n, 6, "0.000001"],
  [1_000_000n, 6, "1"],
  [120n, 0, "120"],
  [-1500n, 6, "-0.0015"],
  [maxUint256, 0, maxUint256.toString()],
])("%s with %i decimals is written %s", (amount, decimals, text) => {
  expect(formatMoney(amount, decimals)).toBe(text);
});
