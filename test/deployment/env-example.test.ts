import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { root } from "../docs/code-block.ts";
import { sources } from "../docs/sources.ts";
import { readExampleVariables } from "./env-example.ts";
import { findSetting, settingsOf } from "./known-settings.ts";

const variables = readExampleVariables();
const services = Object.values(settingsOf);

/** The variables of the command and the middleware besides the settings of the services. */
const ofTheCommand = [
  "WALLET_SEED_PHRASE",
  "WALLET_PRIVATE_KEY",
  "SELLER_SEED_PHRASE",
  "SELLER_PRIVATE_KEY",
  "FLOAT_SEED_PHRASE",
  "FLOAT_PRIVATE_KEY",
  "COINSLOT_MPP_SECRETS",
  "CHANNELS_ENABLED",
  "CHANNELS_AUTHORIZER_SEED_PHRASE",
  "CHANNELS_AUTHORIZER_PRIVATE_KEY",
  "CHANNELS_FORMER_AUTHORIZER_PRIVATE_KEYS",
  "CHANNELS_MOST_AT_RISK",
  "CHANNELS_CLAIM_COST",
  "CHANNELS_CLAIM_AFTER_SECONDS",
  "CHANNELS_CLAIM_AT_CLOSE_SECONDS",
  "CHANNELS_WITHDRAW_DELAY_SECONDS",
  "CHANNELS_MAX_REFUNDS_PER_SIGNER",
  "CHANNELS_MAX_REFUNDS_PER_HOUR",
  "CHANNELS_MAX_DEPOSITS_PER_SIGNER",
  "CHANNELS_MAX_FAILED_DEPOSITS_PER_PAYER",
  "CHANNELS_MIN_DEPOSIT_WORTH",
  "COINSLOT_CONSOLE_KEY",
  "COINSLOT_CONSOLE_READER_KEY",
  "COINSLOT_OPERATOR_URL",
  "COINSLOT_OPERATOR_KEY",
  "BRIDGE_RPC_URL",
  "BRIDGE_TARGET_RPC_URL",
  "COINSLOT_ENV_FILE",
  "NO_COLOR",
];

describe(".env.example", () => {
  it("has every setting of every service", () => {
    const missing = services
      .flat()
      .filter((setting) => !variables.some(({ name }) => findSetting([setting], name)))
      .map(({ name }) => name);
    expect(missing).toEqual([]);
  });

  it("has no variable twice, and none that is never read", () => {
    const names = variables.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)]);
    const known = services.flat();
    const others = names.filter((name) => findSetting(known, name) === undefined);
    expect(others.toSorted()).toEqual(ofTheCommand.toSorted());
  });

  it("has the services' defaults", () => {
    const wrong = services.flat().flatMap((setting) => {
      const variable = variables.find(({ name }) => findSetting([setting], name));
      const { defaultValue } = setting;
      return defaultValue === undefined || variable?.value === defaultValue ? [] : [setting.name];
    });
    expect(wrong).toEqual([]);
  });

  it("names the command's variables that its sources read", () => {
    const unread = ofTheCommand.filter((name) => {
      const [, account = name] = /^([A-Z]+)_(?:SEED_PHRASE|PRIVATE_KEY)$/.exec(name) ?? [];
      return !sources.some((text) => new RegExp(`\\b${account}\\b`).test(text));
    });
    expect(unread).toEqual([]);
  });

  it("holds no secret: secrets are empty, or show a public value's place", () => {
    const secrets = [
      ...services.flat().filter(({ isSecret }) => isSecret === true),
      ...ofTheCommand.filter((name) => /SEED|KEY|SECRETS/.test(name)).map((name) => ({ name })),
    ];
    const filled = variables.filter(
      ({ name, value }) => findSetting(secrets, name) && !/^(|sqlite:.*|https:.*)$/.test(value),
    );
    expect(filled).toEqual([]);
  });
});

describe("an uncommittable file", () => {
  it.each([".env", "secrets/facilitator-seed-phrase", "coinslot.db", "indexer.db-wal"])(
    "is ignored by git: %s",
    (path) => {
      expect(execFileSync("git", ["check-ignore", path], { cwd: root, encoding: "utf8" })).toBe(
        `${path}\n`,
      );
    },
  );
});
