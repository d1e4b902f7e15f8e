import { describe, expect, it } from "vitest";
import { channelsFromEnvironment } from "./channels-from-environment.ts";

const key = "0123456789abcdef".repeat(4);
const enabled = { CHANNELS_ENABLED: "true" };

function read(variables: Record<string, string>) {
  const problems: string[] = [];
  const tell = (problem: string) => problems.push(problem);
  return { settings: channelsFromEnvironment({ variables, tell }), problems };
}

describe("the channels of the environment", () => {
  it("are off unless they are turned on, and have the defaults then", () => {
    for (const env of [{}, { CHANNELS_ENABLED: "false" }, { CHANNELS_ENABLED: " " }]) {
      expect(read(env)).toEqual({ settings: undefined, problems: [] });
    }
    expect(read(enabled)).toEqual({ settings: {}, problems: [] });
  });

  it("have every setting as the options of a facilitator", () => {
    expect(
      read({
        ...enabled,
        CHANNELS_AUTHORIZER_PRIVATE_KEY: key,
        CHANNELS_FORMER_AUTHORIZER_PRIVATE_KEYS: `${key}, ${key},`,
        CHANNELS_MOST_AT_RISK: "2000000",
        CHANNELS_CLAIM_COST: "0",
        CHANNELS_CLAIM_AFTER_SECONDS: "60",
        CHANNELS_CLAIM_AT_CLOSE_SECONDS: "30",
        CHANNELS_WITHDRAW_DELAY_SECONDS: "86400",
        CHANNELS_MAX_REFUNDS_PER_SIGNER: "4",
        CHANNELS_MAX_REFUNDS_PER_HOUR: "5",
        CHANNELS_MAX_DEPOSITS_PER_SIGNER: "6",
        CHANNELS_MAX_FAILED_DEPOSITS_PER_PAYER: "2",
        CHANNELS_MIN_DEPOSIT_WORTH: "3",
      }),
    ).toEqual({
      problems: [],
      settings: {
        authorizer: { privateKey: key },
        formerAuthorizers: [{ privateKey: key }, { privateKey: key }],
        mostAtRisk: 2_000_000n,
        claimCost: 0n,
        claimAfterSeconds: 60,
        claimAtCloseSeconds: 30,
        withdrawDelaySeconds: 86_400,
        maxRefundsPerSigner: 4,
        maxRefundsPerHour: 5,
        maxDepositsPerSigner: 6,
        maxFailedDepositsPerPayer: 2,
        minDepositWorth: 3,
      },
    });
    const seedPhrase = "twelve words";
    expect(read({ ...enabled, CHANNELS_AUTHORIZER_SEED_PHRASE: seedPhrase }).settings).toEqual({
      authorizer: { seedPhrase },
    });
  });

  it.each<[string, Record<string, string>, RegExp]>([
    ["another word", { CHANNELS_ENABLED: "yes" }, /must be true or false/],
    ["a setting of none", { CHANNELS_CLAIM_COST: "5" }, /set CHANNELS_ENABLED to true/],
    [
      "two keys",
      {
        ...enabled,
        CHANNELS_AUTHORIZER_PRIVATE_KEY: key,
        CHANNELS_AUTHORIZER_SEED_PHRASE: "words",
      },
      /leave out one/,
    ],
    [
      "an amount in dollars",
      { ...enabled, CHANNELS_MOST_AT_RISK: "$1" },
      /^CHANNELS_MOST_AT_RISK: must be a whole number/,
    ],
    [
      "a part of a second",
      { ...enabled, CHANNELS_CLAIM_AFTER_SECONDS: "0.5" },
      /^CHANNELS_CLAIM_AFTER_SECONDS: must be a whole number/,
    ],
  ])("have a problem with %s, which repeats no key", (_, env, problem) => {
    const { problems } = read(env);
    expect(problems).toEqual([expect.stringMatching(problem)]);
    expect(problems.join()).not.toContain(key);
  });
});
