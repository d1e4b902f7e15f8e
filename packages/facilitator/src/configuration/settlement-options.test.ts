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
  expect(read).toThrow(/gasPerMinute must be a bigint, not negative[\s\S]*refusalHours/);
});

it("limits that are no numbers are refused by name, for a comparison with them bounds nothing", () => {
  const read = () =>
    readSettlementOptions({
      settleTimeoutSeconds: 0,
      keepAnswersSeconds: -1,
      maxAnswerBytes: 0.5,
      answerLimits: { bytesPerPayer: Number.NaN },
      releaseLimit: { count: Number.NaN, windowSeconds: Number.NaN, shareOfPaid: Number.NaN },
      heartbeatLeaseSeconds: Number.NaN,
      maxPaymentsPerTransaction: 0,
      maxTransactionsInFlight: Number.POSITIVE_INFINITY,
      times: { sweepMs: Number.NaN },
      payersWithCode: JSON.parse('{ "gasPerMinute": 4000000 }'),
    });
  for (const name of [
    "settleTimeoutSeconds",
    "keepAnswersSeconds",
    "maxAnswerBytes",
    "answerLimits.bytesPerPayer",
    "releaseLimit.count",
    "releaseLimit.windowSeconds",
    "releaseLimit.shareOfPaid",
    "heartbeatLeaseSeconds",
    "maxPaymentsPerTransaction",
    "maxTransactionsInFlight",
    "times.sweepMs",
    "payersWithCode.gasPerMinute must be a bigint",
  ]) {
    expect(read).toThrow(name);
  }
});
