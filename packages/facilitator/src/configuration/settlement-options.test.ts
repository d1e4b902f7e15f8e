import { ConfigurationError } from "@coinslot/protocol";
import { expect, it } from "vitest";
import { readSettlementOptions } from "./settlement-options.ts";

it("payers with code are accepted within four million gas a minute, and refused for a day, by default", () => {
  expect(readSettlementOptions({})).toMatchObject({
    acceptsPayersWithCode: true,
    codePayers: { gasPerMinute: 4_000_000n, refusalMs: 86_400_000 },
  });
  const { acceptsPayersWithCode } = readSettlementOptions({ payersWithCode: false });
  expect(acceptsPayersWithCode).toBe(false);
});

it("limits for payers with code that mean nothing are named, all at once", () => {
  const payersWithCode = { gasPerMinute: -1n, refusalHours: Number.NaN };
  const read = () => readSettlementOptions({ payersWithCode });
  expect(read).toThrow(ConfigurationError);
  expect(read).toThrow(/gasPerMinute is negative[\s\S]*refusalHours/);
});
