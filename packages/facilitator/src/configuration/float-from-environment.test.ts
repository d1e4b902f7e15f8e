import { describe, expect, it } from "vitest";
import { floatFromEnvironment } from "./float-from-environment.ts";

const key = "0123456789abcdef".repeat(4);
const address = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";

function read(variables: Record<string, string>) {
  const problems: string[] = [];
  const tell = (problem: string) => problems.push(problem);
  return { settings: floatFromEnvironment({ variables, tell }), problems };
}

describe("the float of the environment", () => {
  it("is a key, or an address alone, with its limits", () => {
    expect(read({})).toEqual({ settings: undefined, problems: [] });
    const limits = {
      FACILITATOR_FLOAT_MAX_PER_DAY: "50000000",
      FACILITATOR_FLOAT_AUTOMATIC_MAX_PER_DAY: "0",
    };
    expect(read({ FACILITATOR_FLOAT_PRIVATE_KEY: key, ...limits })).toEqual({
      settings: { privateKey: key, maxPerDay: 50_000_000n, automatic: { maxPerDay: 0n } },
      problems: [],
    });
    expect(read({ FACILITATOR_FLOAT_ADDRESS: address }).settings).toEqual({ address });
  });

  it("has its key from the program's own source of secrets", () => {
    const secret = (name: string) =>
      name === "FACILITATOR_FLOAT_SEED_PHRASE" ? "words of a file" : undefined;
    const found = floatFromEnvironment({ variables: {}, secret, tell: () => undefined });
    expect(found).toEqual({ seedPhrase: "words of a file" });
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
    const { problems } = read(env);
    expect(problems).toEqual([expect.stringMatching(problem)]);
    expect(problems.join()).not.toContain(key);
  });
});
