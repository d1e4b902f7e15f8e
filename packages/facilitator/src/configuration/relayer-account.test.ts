import { devSeedPhrase } from "@coinslot/devnet";
import { english, generateMnemonic, mnemonicToAccount, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { type RelayerOptions, readRelayer } from "./relayer-account.ts";

const privateKey = `0x${"11".repeat(32)}` as const;
const derived = (addressIndex: number) =>
  mnemonicToAccount(devSeedPhrase, { addressIndex }).address;

function addresses(options: RelayerOptions): string[] {
  const read = readRelayer(options);
  return read.ok ? read.accounts.map(({ address }) => address) : read.problems;
}

function problems(options: RelayerOptions | undefined): string {
  const read = readRelayer(options);
  return read.ok ? "" : read.problems.join("\n");
}

describe("a relayer", () => {
  test("comes from a seed phrase, by default its first account", () => {
    expect(addresses({ seedPhrase: devSeedPhrase })).toEqual([derived(0)]);
    expect(addresses({ seedPhrase: devSeedPhrase, accountIndex: 3 })).toEqual([derived(3)]);
    expect(addresses(devSeedPhrase)).toEqual([derived(0)]);
    expect(addresses(`  ${devSeedPhrase.toUpperCase().replaceAll(" ", "\n  ")} `)).toEqual([
      derived(0),
    ]);
  });

  test("has several addresses of one seed when configured so", () => {
    expect(addresses({ seedPhrase: devSeedPhrase, accountIndex: 1, addressCount: 3 })).toEqual([
      derived(1),
      derived(2),
      derived(3),
    ]);
  });

  test("comes from a private key, with or without 0x, or is a viem account", () => {
    const account = privateKeyToAccount(privateKey);
    for (const options of [{ privateKey }, privateKey, privateKey.slice(2), account]) {
      expect(addresses(options)).toEqual([account.address]);
    }
  });

  test("accepts seed phrases of every length in BIP-39", () => {
    for (const bits of [128, 160, 192, 224, 256] as const) {
      const seedPhrase = generateMnemonic(english, bits);
      expect(addresses({ seedPhrase })).toEqual([mnemonicToAccount(seedPhrase).address]);
    }
  });
});

describe("a faulty relayer is reported", () => {
  test.each<[string, RelayerOptions | undefined, RegExp]>([
    ["not set", undefined, /not set/],
    ["empty", "", /not set/],
    ["a variable that is missing", { seedPhrase: undefined }, /seedPhrase is not set/],
    ["a key that is missing", { privateKey: undefined }, /privateKey is not set/],
    ["a missing word", devSeedPhrase.replace("test ", ""), /has 11 words/],
    ["a key without its last digit", privateKey.slice(0, -1), /^relayer is neither .* 64 digits/],
    [
      "a typing error",
      devSeedPhrase.replace("junk", "jumk"),
      /the word at place 12 is not in the English list/,
    ],
    ["two typing errors", `tets tset ${"test ".repeat(9)}junk`, /places 1, 2/],
    ["a word swapped", devSeedPhrase.replace("junk", "test"), /checksum/],
    ["a key too short", { privateKey: privateKey.slice(0, 60) }, /64 digits/],
    ["a key that is zero", { privateKey: "00".repeat(32) }, /outside the curve/],
    ["a key that is too large", { privateKey: "ff".repeat(32) }, /outside the curve/],
    ["an index below zero", { seedPhrase: devSeedPhrase, accountIndex: -1 }, /accountIndex/],
    ["half an address", { seedPhrase: devSeedPhrase, addressCount: 1.5 }, /addressCount/],
  ])("a faulty relayer is reported as %s", (_, options, words) => {
    expect(problems(options)).toMatch(words);
  });

  test("a faulty relayer is reported with all its faults at once", () => {
    expect(readRelayer({ seedPhrase: "one two", accountIndex: -1, addressCount: 0 })).toMatchObject(
      { ok: false, problems: { length: 3 } },
    );
  });

  test("a faulty relayer is reported without its secret", () => {
    const secret = "zebra zebra zzyzx";
    expect(problems({ seedPhrase: secret })).not.toMatch(/zebra|zzyzx/);
    expect(problems({ seedPhrase: `${"zebra ".repeat(11)}zzyzx` })).not.toMatch(/zebra|zzyzx/);
    expect(problems({ privateKey: "ff".repeat(32) })).not.toContain("ffff");
    expect(problems({ privateKey: `${"ab".repeat(31)}` })).not.toContain("abab");
  });
});
