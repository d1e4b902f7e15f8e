import { expect, it } from "vitest";
import { createUsedTokens } from "./used-tokens.ts";

it("takes each token once, until it has expired", () => {
  const used = createUsedTokens();
  expect(used.use("a", 60_000, 0)).toBe(true);
  expect(used.use("a", 60_000, 59_999)).toBe(false);
  expect(used.use("b", 120_000, 60_000)).toBe(true);
  expect(used.size()).toBe(1);
});

it("remembers a bounded number, of which the oldest goes first", () => {
  const used = createUsedTokens({ max: 3 });
  for (const token of ["a", "b", "c", "d"]) expect(used.use(token, 60_000, 0)).toBe(true);
  expect(used.size()).toBe(3);
  for (const token of ["b", "c", "d"]) expect(used.use(token, 60_000, 0)).toBe(false);
  // It opens the kept answer again, and buys nothing.
  expect(used.use("a", 60_000, 0)).toBe(true);
});
