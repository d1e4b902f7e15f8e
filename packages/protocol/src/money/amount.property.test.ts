import fc from "fast-check";
import { expect, test } from "vitest";
import { uint256 } from "../testing/arbitrary-messages.ts";
import { amountSchema, formatMoney, isAmount, parseMoney } from "./amount.ts";

const decimals = fc.integer({ min: 0, max: 30 });

test("parseMoney undoes formatMoney", () => {
  fc.assert(
    fc.property(uint256, decimals, (amount, digits) => {
      expect(parseMoney(formatMoney(amount, digits), digits)).toBe(amount);
      expect(parseMoney(`$${formatMoney(amount, digits)}`, digits)).toBe(amount);
    }),
  );
});

test("formatMoney undoes parseMoney for every price without needless zeros", () => {
  const fraction = fc.stringMatching(/^[0-9]{0,5}[1-9]$/);
  const price = fc.tuple(fc.nat().map(String), fc.option(fraction)).map(([whole, part]) => {
    return part === null ? whole : `${whole}.${part}`;
  });
  fc.assert(
    fc.property(price, (text) => {
      expect(formatMoney(parseMoney(text, 6) ?? -1n, 6)).toBe(text);
    }),
  );
});

test("an amount has one form on the wire", () => {
  fc.assert(
    fc.property(uint256, (amount) => {
      expect(amountSchema.parse(amount.toString())).toBe(amount.toString());
    }),
  );
});

test("every accepted amount is the decimal form of a uint256", () => {
  const nearlyAmount = fc.stringMatching(/^[ +-]?[0-9a-fx._ ]{0,80}$/);
  fc.assert(
    fc.property(fc.oneof(nearlyAmount, fc.string({ unit: "binary" })), (text) => {
      if (isAmount(text)) expect(BigInt(text).toString()).toBe(text);
    }),
    { numRuns: 1000 },
  );
});

test("parseMoney never throws, for any text", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), decimals, (text, digits) => {
      const amount = parseMoney(text, digits);
      if (amount !== undefined) expect(isAmount(amount.toString())).toBe(true);
    }),
  );
});
