import { ConfigurationError } from "@coinslot/protocol";
import { expect, it } from "vitest";
import { readSettlementOptions } from "./settlement-options.ts";

it("payers with code share four million gas a minute by default, and are refused for a day after a burn", () => {
  expect(readSettlementOptions({})).toMatchObject({
    acceptsPayersWithCode: true,
    codePayers: { gasPerMinute: 4_000_000n, refusalMs: 86_400_000 },
  });
  const { acceptsPayersWithCode } = readSettlementOptions({ payersWithCode: false });
  expect(acceptsPayersWithCode).toBe(false);
});

it("invalid limits for payers with code are reported all at once", () => {
  const payersWithCode = { gasPerMinute: -1n, refusalHours: Number.NaN };
  const read = () => readSettlementOptions({ payersWithCode });
  expect(read).toThrow(ConfigurationError);
  expect(read).toThrow(/gasPerMinute is negative[\s\S]*refusalHours/);
});
