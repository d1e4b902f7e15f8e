import { devSeedPhrase } from "@coinslot/devnet";
import { ConfigurationError, plasmaUsdt0 } from "@coinslot/protocol";
import pino from "pino";
import { describe, expect, test } from "vitest";
import { readFacilitatorOptions } from "./facilitator-configuration.ts";
import type { FacilitatorNetworkOptions, FacilitatorOptions } from "./facilitator-options.ts";

const plasma: FacilitatorNetworkOptions = {
  network: "eip155:9745",
  rpcUrls: ["https://rpc.example"],
  relayer: { seedPhrase: devSeedPhrase },
};
const oldKey = `0x${"07".repeat(32)}`;
const good: FacilitatorOptions = { networks: [plasma], ledger: "sqlite:./coinslot.db" };

const withNetwork = (change: Partial<FacilitatorNetworkOptions>): FacilitatorOptions => ({
  ...good,
  networks: [{ ...plasma, ...change }],
});

function problemsOf(options: FacilitatorOptions): readonly string[] {
  try {
    readFacilitatorOptions(options);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
  return [];
}

describe("valid facilitator options", () => {
  test("are completed with the preset of the network", () => {
    const { networks, ledger } = readFacilitatorOptions(good);
    expect(ledger).toBe("sqlite:./coinslot.db");
    expect(networks[0]).toMatchObject({
      network: "eip155:9745",
      chainId: 9745,
      rpcUrls: ["https://rpc.example"],
      assets: undefined,
      domains: [plasmaUsdt0],
      finalAfter: 10,
      blockTimeSeconds: 1,
      callGas: 300_000n,
    });
    expect(networks[0].serveAfter(1n)).toBe(0);
  });

  test("accept one URL, a pino logger, PostgreSQL, and assets as addresses or with their domain", () => {
    const other = {
      address: `0x${"12".repeat(20)}`,
      name: "Other",
      version: "2",
      decimals: 18,
    } as const;
    const options: FacilitatorOptions = {
      networks: [
        {
          network: "eip155:9745",
          rpcUrl: "http://127.0.0.1:8545",
          relayer: devSeedPhrase,
          assets: [plasmaUsdt0.address, other],
        },
      ],
      ledger: "postgres://user:password@host/database",
      logger: pino({ level: "silent" }),
    };
    const { networks } = readFacilitatorOptions(options);
    expect(networks[0].rpcUrls).toEqual(["http://127.0.0.1:8545"]);
    expect(networks[0].assets).toEqual([plasmaUsdt0.address.toLowerCase(), other.address]);
    expect(networks[0].domains).toEqual([plasmaUsdt0, other]);
  });

  test("may set the depth by amount, and an invalid depth counts as the largest", () => {
    const byAmount = withNetwork({ finalAfter: 12, serveAfter: (amount) => Number(amount) });
    const { serveAfter } = readFacilitatorOptions(byAmount).networks[0];
    expect([serveAfter(0n), serveAfter(3n), serveAfter(99n)]).toEqual([0, 3, 12]);
    const broken = withNetwork({ finalAfter: 12, serveAfter: () => Number.NaN });
    expect(readFacilitatorOptions(broken).networks[0].serveAfter(1n)).toBe(12);
  });
});

describe("retention", () => {
  const dayMs = 86_400_000;

  test("is of signatures alone by default", () => {
    expect(readFacilitatorOptions(good).retention).toEqual({
      keepSignaturesMs: 30 * dayMs,
      keepPaymentsMs: undefined,
      keepUndeliveredMs: undefined,
    });
  });

  test("is in whole milliseconds", () => {
    const { retention } = readFacilitatorOptions({ ...good, keepPaymentsDays: 1.1 });
    expect(retention.keepPaymentsMs).toBe(95_040_000);
  });

  test("keeps for ever what is to be kept for infinite days", () => {
    const infinite = Number.POSITIVE_INFINITY;
    const options = { ...good, keepPaymentsDays: infinite, keepUndeliveredDays: infinite };
    expect(readFacilitatorOptions(options).retention).toEqual({
      keepSignaturesMs: 30 * dayMs,
      keepPaymentsMs: undefined,
      keepUndeliveredMs: undefined,
    });
  });

  test("keeps no signature for longer than its payment", () => {
    expect(readFacilitatorOptions({ ...good, keepPaymentsDays: 7 }).retention).toMatchObject({
      keepSignaturesMs: 7 * dayMs,
      keepPaymentsMs: 7 * dayMs,
    });
  });
});

describe("invalid facilitator options", () => {
  test("are refused with a retention below a day", () => {
    expect(problemsOf({ ...good, keepPaymentsDays: 0.5 })).toEqual([
      expect.stringContaining("keepPaymentsDays must be at least 1"),
    ]);
  });

  test("are refused with a retention of parts below a day", () => {
    const options = { ...good, keepSignaturesDays: 0, keepUndeliveredDays: 0.9 };
    expect(problemsOf(options)).toEqual([
      expect.stringContaining("keepSignaturesDays must be at least 1"),
      expect.stringContaining("keepUndeliveredDays must be at least 1"),
    ]);
  });

  test.each<[string, Partial<FacilitatorNetworkOptions>, RegExp]>([
    ["no endpoint", { rpcUrls: [] }, /rpcUrls is empty/],
    ["an endpoint from a missing variable", { rpcUrls: [undefined] }, /RPC URL 1 of 1 is not set/],
    ["a file as endpoint", { rpcUrls: ["https://a", "file://b"] }, /RPC URL 2 of 2 must be a URL/],
    ["sockets only", { rpcUrls: ["wss://a"] }, /WebSockets only/],
    ["a missing relayer", { relayer: undefined }, /relayer is not set/],
    [
      "a missing retiring relayer",
      { retiringRelayers: [undefined] },
      /retiringRelayers\[0\] is not set/,
    ],
    [
      "a relayer that retires and stays",
      { retiringRelayers: [devSeedPhrase] },
      /retiringRelayers\[0\]: 0x\w{40} is in relayer, too/,
    ],
    [
      "a retiring relayer twice",
      { retiringRelayers: [oldKey, { privateKey: oldKey }] },
      /retiringRelayers\[1\]: 0x\w{40} is named twice/,
    ],
    ["no assets", { assets: [] }, /assets is empty/],
    ["an asset twice", { assets: [plasmaUsdt0, plasmaUsdt0.address] }, /named twice/],
    ["a mistyped asset", { assets: ["0xB8CE59FC3717ada4C02eaDF9682A9e934F625eBB"] }, /checksum/],
    ["a depth below zero", { serveAfter: -1 }, /serveAfter/],
    ["finality before service", { serveAfter: 5, finalAfter: 2 }, /finalAfter is less/],
    ["hardly any gas", { callGas: 1n }, /callGas/],
    [
      "a tip above the fee",
      { fees: { maxFeePerGas: 1n, maxPriorityFeePerGas: 2n } },
      /includes it/,
    ],
    [
      "a negative fee",
      { fees: { maxFeePerGas: -1n } },
      /maxFeePerGas must be a bigint, not negative/,
    ],
    ["gas as a number", JSON.parse('{ "callGas": 300000 }'), /callGas must be a bigint/],
    [
      "a fee as a number",
      JSON.parse('{ "fees": { "maxFeePerGas": 100 } }'),
      /fees.maxFeePerGas must be a bigint/,
    ],
    [
      "a balance as a number",
      JSON.parse('{ "minimumBalance": 5 }'),
      /minimumBalance must be a bigint/,
    ],
    ["a late warning", { minimumBalance: 5n, warningBalance: 4n }, /too late/],
    ["no time between blocks", { blockTimeSeconds: 0 }, /blockTimeSeconds/],
  ])("are refused: %s", (_, change, words) => {
    const problems = problemsOf(withNetwork(change));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(words);
    expect(problems[0]).toMatch(/^networks\[0\]: /);
  });

  test("are refused with a network listed twice, and without networks", () => {
    expect(problemsOf({ ...good, networks: [plasma, plasma] })).toEqual([
      "networks[1]: eip155:9745 is named before, by networks[0]",
    ]);
    expect(problemsOf({ ...good, networks: [] })).toEqual(["networks is empty: name at least one"]);
  });

  test.each([undefined, "", "coinslot.db", "mysql://host/db", "sqlite:"])(
    "are refused with a ledger of %j",
    (ledger) => {
      expect(problemsOf({ ...good, ledger })).toEqual([
        expect.stringMatching(/^ledger is not set/),
      ]);
    },
  );

  test("are reported all at once, without any URL or secret", () => {
    const secret = "https://rpc.example/v2/key-of-mine";
    const problems = problemsOf({
      networks: [
        { ...plasma, rpcUrls: [`ftp${secret}`], relayer: { privateKey: "0xkey-of-mine" } },
        { ...plasma, network: "eip155:988", relayer: { seedPhrase: "key-of-mine" }, callGas: 0n },
      ],
      ledger: "key-of-mine",
    });
    expect(problems).toHaveLength(5);
    expect(problems.join()).not.toContain("key-of-mine");
  });
});
