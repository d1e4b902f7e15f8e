import { describe, expect, it } from "vitest";
import { readOperatorSettings } from "./operator-settings.ts";

const key = "0123456789abcdef".repeat(4);

function read<Settings>(
  reader: (env: Record<string, string>, tell: (problem: string) => void) => Settings,
  env: Record<string, string>,
) {
  const problems: string[] = [];
  const settings = reader(env, (problem) => problems.push(problem));
  return { settings, problems };
}

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
