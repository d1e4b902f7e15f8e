import { describe, expect, it } from "vitest";
import { type RefundOptions, readRefundOptions } from "./refund-options.ts";

const network = "eip155:9745";
const asset = `0x${"ab".repeat(20)}` as const;
const other = `0x${"cd".repeat(20)}` as const;
const address = `0x${"11".repeat(20)}` as const;
const read = (options: Omit<RefundOptions, "address"> = {}) =>
  readRefundOptions({ address, ...options });

describe("the limits of a float's day", () => {
  it("leave half of it to the operator, unless the policies have one of their own", () => {
    const limitsOf = (options: Omit<RefundOptions, "address">) => {
      const { settings, problems } = read(options);
      expect(problems).toEqual([]);
      const { maxPerDay, automaticMaxPerDay } = settings;
      return [asset, other].map((token) => [
        maxPerDay({ network, asset: token }),
        automaticMaxPerDay({ network, asset: token }),
      ]);
    };
    expect(limitsOf({})).toEqual([
      [100_000_000n, 50_000_000n],
      [100_000_000n, 50_000_000n],
    ]);
    const upper = `0x${"AB".repeat(20)}` as const;
    const listed = [{ network, asset: upper, maxPerDay: 7n }] as const;
    expect(limitsOf({ maxPerDay: listed })).toEqual([
      [7n, 3n],
      [0n, 0n],
    ]);
    expect(limitsOf({ automatic: { maxPerDay: 5n } })[0]).toEqual([100_000_000n, 5n]);
    expect(limitsOf({ maxPerDay: 9n, automatic: { maxPerDay: listed } })).toEqual([
      [9n, 7n],
      [9n, 0n],
    ]);
  });

  it("are not negative", () => {
    expect(read({ maxPerDay: -1n }).problems).toEqual([
      "refunds.maxPerDay must be a bigint, or a list of them by token, not negative",
    ]);
    const listed = [{ network, asset, maxPerDay: -1n }] as const;
    expect(read({ automatic: { maxPerDay: listed } }).problems).toEqual([
      "refunds.automatic.maxPerDay must be a bigint, or a list of them by token, not negative",
    ]);
  });
});
