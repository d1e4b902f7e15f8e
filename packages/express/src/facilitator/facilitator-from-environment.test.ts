import { expect, it } from "vitest";
import { facilitatorFromEnvironment } from "./facilitator-from-environment.ts";

const environment = {
  COINSLOT_NETWORK: "eip155:9745",
  COINSLOT_RPC_URL: "http://127.0.0.1:1",
  FACILITATOR_PRIVATE_KEY: `0x${"11".repeat(32)}`,
  COINSLOT_LEDGER: "sqlite::memory:",
};

it("the webhooks of the environment are those of the facilitator, which checks them", async () => {
  const problems: string[] = [];
  const source = facilitatorFromEnvironment(
    {
      ...environment,
      COINSLOT_WEBHOOK_URL: "http://10.0.0.1/hook, https://example.com/hook",
      COINSLOT_WEBHOOK_SECRET: "weak",
    },
    (problem) => problems.push(problem),
  );
  expect(problems).toEqual([]);
  await expect(source.load()).rejects.toMatchObject({
    problems: [
      "webhooks[0]: url must begin with https://, name a public address, and have no user and password",
      "webhooks[0]: secret must be whsec_ and 24 to 64 random bytes in base64",
      "webhooks[1]: secret must be whsec_ and 24 to 64 random bytes in base64",
    ],
  });
});

it("the float of the environment is that of the facilitator, which checks its key", async () => {
  const source = facilitatorFromEnvironment(
    {
      ...environment,
      FACILITATOR_FLOAT_PRIVATE_KEY: environment.FACILITATOR_PRIVATE_KEY,
      FACILITATOR_FLOAT_MAX_PER_DAY: "5000000",
    },
    () => undefined,
  );
  await expect(source.load()).rejects.toThrow(/float/);
});

it.each([
  [{ FACILITATOR_FLOAT_ADDRESS: "0x12" }, "FACILITATOR_FLOAT_ADDRESS: must be an address"],
  [{ FACILITATOR_FLOAT_MAX_PER_DAY: "5 USD" }, "must be a whole number"],
  [{ FACILITATOR_FLOAT_MAX_PER_DAY: "5" }, "limits of a float"],
  [
    {
      FACILITATOR_FLOAT_ADDRESS: `0x${"22".repeat(20)}`,
      FACILITATOR_FLOAT_PRIVATE_KEY: `0x${"33".repeat(32)}`,
    },
    "leave out all but one",
  ],
  [{ CHANNELS_CLAIM_COST: "5" }, "set CHANNELS_ENABLED to true"],
  [{ CHANNELS_ENABLED: "true" }, "channels.authorizer is not set"],
  [
    {
      CHANNELS_ENABLED: "true",
      CHANNELS_AUTHORIZER_PRIVATE_KEY: `0x${"33".repeat(32)}`,
      CHANNELS_MIN_DEPOSIT_WORTH: "0",
    },
    "channels.minDepositWorth must be",
  ],
])("the environment %j is refused by the facilitator that it makes", async (variables, problem) => {
  const source = facilitatorFromEnvironment({ ...environment, ...variables }, () => undefined);
  await expect(source.load()).rejects.toMatchObject({
    problems: [expect.stringContaining(problem)],
  });
});

it("the channels of the environment are those of the facilitator", async () => {
  const source = facilitatorFromEnvironment(
    {
      ...environment,
      CHANNELS_ENABLED: "true",
      CHANNELS_AUTHORIZER_PRIVATE_KEY: `0x${"33".repeat(32)}`,
      CHANNELS_CLAIM_COST: "7",
    },
    () => undefined,
  );
  const facilitator = await source.load();
  expect(facilitator.channels?.minDepositOf?.("eip155:9745")).toBe(315n);
  await source.close();
});
