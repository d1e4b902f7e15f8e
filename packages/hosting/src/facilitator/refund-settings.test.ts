import { describe, expect, it } from "vitest";
import { readOperatorSettings } from "./operator-settings.ts";
import { readRefundSettings } from "./refund-settings.ts";

const key = "0123456789abcdef".repeat(4);
const address = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";

function read<Settings>(
  reader: (env: Record<string, string>, tell: (problem: string) => void) => Settings,
  env: Record<string, string>,
) {
  const problems: string[] = [];
  const settings = reader(env, (problem) => problems.push(problem));
  return { settings, problems };
}

describe("the float of the hosted facilitator", () => {
  it("is a key, or an address alone, with its limits", () => {
    expect(read(readRefundSettings, {})).toEqual({ settings: undefined, problems: [] });
    const limits = {
      FACILITATOR_FLOAT_MAX_PER_DAY: "50000000",
      FACILITATOR_FLOAT_AUTOMATIC_MAX_PER_DAY: "0",
    };
    expect(read(readRefundSettings, { FACILITATOR_FLOAT_PRIVATE_KEY: key, ...limits })).toEqual({
      settings: { privateKey: key, maxPerDay: 50_000_000n, automatic: { maxPerDay: 0n } },
      problems: [],
    });
    expect(read(readRefundSettings, { FACILITATOR_FLOAT_ADDRESS: address }).settings).toEqual({
      address,
    });
  });

  it.each<[string, Record<string, string>, RegExp]>([
    [
      "two accounts",
      { FACILITATOR_FLOAT_PRIVATE_KEY: key, FACILITATOR_FLOAT_ADDRESS: address },
      /leave out all but one/,
    ],
    ["a wrong address", { FACILITATOR_FLOAT_ADDRESS: "0x12" }, /must be an address/],
    [
      "a decimal amount",
      { FACILITATOR_FLOAT_PRIVATE_KEY: key, FACILITATOR_FLOAT_MAX_PER_DAY: "0.5" },
      /^FACILITATOR_FLOAT_MAX_PER_DAY: must be a whole number/,
    ],
    [
      "a limit without a float",
      { FACILITATOR_FLOAT_AUTOMATIC_MAX_PER_DAY: "5" },
      /are limits of a float/,
    ],
  ])("has a problem with %s, which repeats no key", (_, env, problem) => {
    const { problems } = read(readRefundSettings, env);
    expect(problems).toEqual([expect.stringMatching(problem)]);
    expect(problems.join()).not.toContain(key);
  });
});

describe("the operator of the hosted facilitator", () => {
  it("has a port, and keys", () => {
    expect(read(readOperatorSettings, {})).toEqual({ settings: undefined, problems: [] });
    const env = { FACILITATOR_OPERATOR_PORT: "4030", FACILITATOR_OPERATOR_KEY: `${key}, ${key}` };
    expect(read(readOperatorSettings, env)).toEqual({
      settings: { port: 4_030, host: undefined, key: [key, key] },
      problems: [],
    });
    const host = { FACILITATOR_OPERATOR_HOST: "0.0.0.0" };
    expect(read(readOperatorSettings, { ...env, ...host }).settings?.host).toBe("0.0.0.0");
  });

  it.each<[string, Record<string, string>, RegExp]>([
    ["a port without a key", { FACILITATOR_OPERATOR_PORT: "4030" }, /OPERATOR_KEY: is not set/],
    ["a key without a port", { FACILITATOR_OPERATOR_KEY: key }, /OPERATOR_PORT: is not set/],
    [
      "a port that is none",
      { FACILITATOR_OPERATOR_PORT: "70000", FACILITATOR_OPERATOR_KEY: key },
      /must be a whole number from 0 to 65535/,
    ],
  ])("has a problem with %s", (_, env, problem) => {
    expect(read(readOperatorSettings, env).problems).toEqual([expect.stringMatching(problem)]);
  });
});
