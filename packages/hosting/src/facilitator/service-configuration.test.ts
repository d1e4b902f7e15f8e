import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { devSeedPhrase } from "@coinslot/devnet";
import { ConfigurationError, plasmaUsdt0, stableUsdt0 } from "@coinslot/protocol";
import { describe, expect, it, onTestFinished } from "vitest";
import { createCallerKey } from "./caller-keys.ts";
import {
  type FacilitatorSources,
  readFacilitatorServiceConfiguration,
} from "./service-configuration.ts";
import { facilitatorSettings } from "./settings.ts";

const seed = { FACILITATOR_SEED_PHRASE: devSeedPhrase };
const seller = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
const token = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
const eventSecret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

async function write(name: string, text: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "coinslot-facilitator-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, name);
  await writeFile(path, text);
  return path;
}

function problemsOf(sources: FacilitatorSources): readonly string[] {
  try {
    readFacilitatorServiceConfiguration(sources);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
  return [];
}

describe("the configuration of the hosted facilitator", () => {
  it("needs an account that pays gas, and serves Plasma and Stable", () => {
    const { facilitator, ...settings } = readFacilitatorServiceConfiguration({ env: seed });
    const rpcUrls = [expect.stringMatching(/^https:\/\//)];
    expect(facilitator.networks).toMatchObject([
      { network: "eip155:9745", rpcUrls, assets: [plasmaUsdt0] },
      { network: "eip155:988", rpcUrls, assets: [stableUsdt0] },
    ]);
    expect(facilitator.ledger).toBe("sqlite:./coinslot.db");
    expect(facilitator.payersWithCode).toEqual({ gasPerMinute: 4_000_000n });
    expect(settings).toEqual({
      host: "127.0.0.1",
      port: 4022,
      trustProxy: 0,
      logLevel: "info",
      keys: undefined,
      payTo: undefined,
      requestsPerMinute: 600,
      maxPaidRequests: 1_000,
      eventSecrets: [],
      unsafePrivateCallbacks: false,
    });
  });

  it("is read from the environment, by the names of the other commands", () => {
    const env = {
      ...seed,
      COINSLOT_NETWORK: "eip155:9745",
      COINSLOT_RPC_URL: "https://one.example, https://two.example",
      COINSLOT_RPC_URL_4242: "https://three.example",
      COINSLOT_TOKENS: `eip155:4242/${token}`,
      COINSLOT_LEDGER: "postgres://localhost/coinslot",
      FACILITATOR_KEYS: "shop:a-key-of-more-than-24-signs",
      FACILITATOR_PAY_TO: seller,
      FACILITATOR_REQUESTS_PER_MINUTE: "60",
      FACILITATOR_MAX_PAID_REQUESTS: "50",
      FACILITATOR_CODE_GAS_PER_MINUTE: "900000",
      FACILITATOR_EVENT_SECRET: `${eventSecret}, ${eventSecret}`,
      FACILITATOR_UNSAFE_PRIVATE_CALLBACKS: "true",
      FACILITATOR_HOST: "0.0.0.0",
      FACILITATOR_PORT: "9000",
      FACILITATOR_TRUST_PROXY: "1",
      FACILITATOR_LOG_LEVEL: "warn",
    };
    expect(readFacilitatorServiceConfiguration({ env })).toMatchObject({
      host: "0.0.0.0",
      port: 9000,
      trustProxy: 1,
      logLevel: "warn",
      keys: [{ name: "shop", hash: expect.stringMatching(/^[0-9a-f]{64}$/) }],
      payTo: [seller],
      requestsPerMinute: 60,
      maxPaidRequests: 50,
      eventSecrets: [eventSecret, eventSecret],
      unsafePrivateCallbacks: true,
      facilitator: {
        ledger: "postgres://localhost/coinslot",
        payersWithCode: { gasPerMinute: 900_000n },
        networks: [
          { network: "eip155:9745", rpcUrls: ["https://one.example", "https://two.example"] },
          { network: "eip155:4242", assets: [token] },
        ],
      },
    });
  });

  it("may refuse payers with code, and reports invalid limits for them", () => {
    const env = { ...seed, FACILITATOR_PAYERS_WITH_CODE: "false" };
    const { facilitator } = readFacilitatorServiceConfiguration({ env });
    expect(facilitator.payersWithCode).toBe(false);
    const wrong = { FACILITATOR_PAYERS_WITH_CODE: "no", FACILITATOR_CODE_GAS_PER_MINUTE: "-1" };
    expect(problemsOf({ env: { ...seed, ...wrong } })).toEqual([
      "FACILITATOR_PAYERS_WITH_CODE: must be true or false",
      "FACILITATOR_CODE_GAS_PER_MINUTE: must be a whole number from 0 to 999999999",
    ]);
  });

  it("may omit networks that the environment has for other commands", () => {
    const env = {
      ...seed,
      COINSLOT_RPC_URL_988: "https://one.example",
      COINSLOT_RPC_URL_1: "https://two.example",
      FACILITATOR_NETWORKS: "eip155:988",
    };
    const { facilitator } = readFacilitatorServiceConfiguration({ env });
    expect(facilitator.networks).toMatchObject([{ network: "eip155:988" }]);
    expect(facilitator.networks).toHaveLength(1);
  });

  it("is read from a YAML or a JSON file, overridden by the environment", async () => {
    const { entry } = createCallerKey("shop");
    const hash = entry.slice("shop:".length);
    const yaml = await write(
      "facilitator.yaml",
      `
port: 9000
ledger: sqlite:./from-file.db
payTo: ["${seller}"]
keys: [{ name: shop, hash: "${hash}" }]
networks:
  - network: eip155:9745
    rpcUrls: [https://file.example]
    serveAfter: 1
    finalAfter: 20
    minimumBalance: "5000000000000000"
    maxFeePerGas: 100000000000
  - network: eip155:4242
    rpcUrls: [https://base.example]
    assets: [{ address: "${token}", name: "USD Coin", version: "2", decimals: 6 }]
`,
    );
    const env = {
      ...seed,
      FACILITATOR_CONFIG: yaml,
      FACILITATOR_PORT: "9001",
      COINSLOT_RPC_URL_4242: "http://other:1",
      COINSLOT_TOKENS: `eip155:4242/${token.toLowerCase()}`,
    };
    expect(readFacilitatorServiceConfiguration({ env })).toMatchObject({
      port: 9001,
      payTo: [seller],
      keys: [{ name: "shop", hash: hash.slice("sha256:".length) }],
      facilitator: {
        ledger: "sqlite:./from-file.db",
        networks: [
          {
            network: "eip155:4242",
            rpcUrls: ["http://other:1"],
            assets: [{ address: token, name: "USD Coin", version: "2", decimals: 6 }],
          },
          {
            network: "eip155:9745",
            rpcUrls: ["https://file.example"],
            serveAfter: 1,
            finalAfter: 20,
            minimumBalance: 5_000_000_000_000_000n,
            fees: { maxFeePerGas: 100_000_000_000n },
            assets: [plasmaUsdt0],
          },
        ],
      },
    });
    const json = await write("facilitator.json", JSON.stringify({ port: 1 }));
    expect(readFacilitatorServiceConfiguration({ env: seed, file: json }).port).toBe(1);
  });

  it("reads secrets from files, as containers provide them", async () => {
    const env = {
      FACILITATOR_SEED_PHRASE_FILE: await write("seed", `${devSeedPhrase}\n`),
      COINSLOT_LEDGER_FILE: await write("ledger", "postgres://user:secret@db/coinslot\n"),
      FACILITATOR_KEYS_FILE: await write("keys", `# sellers\n${createCallerKey("shop").entry}\n`),
      FACILITATOR_EVENT_SECRET_FILE: await write("events", eventSecret),
    };
    expect(readFacilitatorServiceConfiguration({ env })).toMatchObject({
      keys: [{ name: "shop" }],
      eventSecrets: [eventSecret],
      facilitator: { ledger: "postgres://user:secret@db/coinslot" },
    });
    expect(problemsOf({ env: { ...env, ...seed } }).join()).toContain(
      "FACILITATOR_SEED_PHRASE and FACILITATOR_SEED_PHRASE_FILE are both set",
    );
    const lost = { ...seed, COINSLOT_LEDGER_FILE: "/does/not/exist" };
    expect(problemsOf({ env: lost }).join()).toContain("/does/not/exist cannot be read");
  });

  it("reports all faults at once, by the name of their setting, with the remedy", () => {
    const problems = problemsOf({
      env: {
        COINSLOT_NETWORK: "plasma",
        COINSLOT_RPC_URL_988: "ftp://user:secret@host",
        COINSLOT_RPC_URL_4243: "https://three.example/secret",
        COINSLOT_TOKENS: "USDC",
        COINSLOT_LEDGER: "mysql://user:secret@host/db",
        FACILITATOR_SEED_PHRASE: "secret words that are no phrase",
        FACILITATOR_PRIVATE_KEY: "0xsecret",
        FACILITATOR_NETWORKS: "eip155:988,eip155:4243,atlantis,eip155:4242",
        FACILITATOR_KEYS: "shop:secret",
        FACILITATOR_PAY_TO: "0xsecret",
        FACILITATOR_REQUESTS_PER_MINUTE: "0",
        FACILITATOR_EVENT_SECRET: "secret",
        FACILITATOR_UNSAFE_PRIVATE_CALLBACKS: "yes",
        FACILITATOR_PORT: "eighty",
        FACILITATOR_TRUST_PROXY: "loopback",
        FACILITATOR_LOG_LEVEL: "loud",
      },
    });
    const text = problems.join("\n");
    for (const words of [
      "COINSLOT_NETWORK: must be a network such as eip155:9745",
      "COINSLOT_RPC_URL_988 must hold URLs that begin with http:// or https://",
      "COINSLOT_TOKENS: USDC is not like",
      "COINSLOT_TOKENS: names no token on eip155:4243",
      "COINSLOT_RPC_URL_4242: is not set. Name endpoints of eip155:4242",
      "COINSLOT_LEDGER: is not set, or has an unknown URL",
      "FACILITATOR_SEED_PHRASE and FACILITATOR_PRIVATE_KEY are both set",
      "FACILITATOR_SEED_PHRASE: has 6 words, and must have 12",
      "FACILITATOR_NETWORKS: must be networks such as eip155:9745",
      "FACILITATOR_KEYS: entry 1 (shop) must have a key of 24",
      "FACILITATOR_PAY_TO[0]: must be an address",
      "FACILITATOR_REQUESTS_PER_MINUTE: must be a whole number from 1",
      "FACILITATOR_EVENT_SECRET: must be whsec_",
      "FACILITATOR_UNSAFE_PRIVATE_CALLBACKS: must be true or false",
      "FACILITATOR_PORT: must be a whole number from 0 to 65535",
      "FACILITATOR_TRUST_PROXY: must be a whole number",
      "FACILITATOR_LOG_LEVEL: must be one of debug, info",
    ]) {
      expect(text).toContain(words);
    }
    expect(text).not.toContain("secret");
    expect(new Set(problems).size).toBe(problems.length);
  });

  it("is checked in full also where no network can be read", () => {
    const account = { FACILITATOR_SEED_PHRASE: "words that are no phrase" };
    expect(problemsOf({ env: { ...account, FACILITATOR_NETWORKS: "plasma" } })).toEqual([
      expect.stringMatching(/^FACILITATOR_NETWORKS: must be networks/),
      expect.stringMatching(/^FACILITATOR_SEED_PHRASE: has 5 words/),
    ]);
  });

  it("reports the fault of a malformed private key, and nothing of a seed phrase", () => {
    expect(problemsOf({ env: { FACILITATOR_PRIVATE_KEY: "0xsecret" } })).toEqual([
      "FACILITATOR_PRIVATE_KEY: must be 32 bytes in hex: 64 digits, with or without 0x",
    ]);
  });

  it("names the first steps where nothing is set", () => {
    expect(problemsOf({ env: {} })).toEqual([
      expect.stringMatching(/^FACILITATOR_SEED_PHRASE: is not set.*coinslot init/),
    ]);
  });

  it("refuses malformed files, unknown settings, and secrets in a file", async () => {
    for (const [name, text, problem] of [
      ["broken.yaml", "ledger: 'secret\nport: [", /cannot be read as YAML or JSON.*line/],
      ["list.yaml", "- 1", /must be a mapping/],
      ["typo.yaml", "ledgr: sqlite:./x.db", /ledgr/],
      [
        "seed.yaml",
        `seedPhrase: "${devSeedPhrase}"`,
        /seedPhrase.*Secrets are for the environment/,
      ],
      ["port.yaml", "port: many", /^port: must be a whole number/],
      ["key.yaml", "keys: [{ name: shop, hash: secret }]", /^keys\[0\]\.hash: must be sha256:/],
      ["network.yaml", "networks: [{ network: plasma }]", /^networks\[0\]\.network: must be/],
      ["twice.yaml", twice, /^networks: describes one of them twice/],
      ["bare.yaml", `payTo: [0x${"3c".repeat(20)}]`, /^payTo\[0\]: .* address in quotes/],
      ["wei.yaml", fileWith("minimumBalance: 10000000000000000"), /: .* wei, such as .*in quotes/],
      ["depth.yaml", fileWith("serveAfter: 30, finalAfter: 3"), /eip155:9745: finalAfter is less/],
    ] as const) {
      const problems = problemsOf({ env: seed, file: await write(name, text) });
      expect(problems.join("\n")).toMatch(problem);
      expect(problems.join("\n")).not.toMatch(/secret'|test test/);
    }
    expect(problemsOf({ env: seed, file: "/does/not/exist.yaml" })).toHaveLength(1);
  });

  it("is listed: each setting once, with an explanation of one line", () => {
    const names = facilitatorSettings.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const { explanation } of facilitatorSettings) expect(explanation).toMatch(/^[^\n]{20,}$/);
  });
});

const twice = "networks: [{ network: 'eip155:988' }, { network: 'eip155:988' }]";

function fileWith(settings: string): string {
  return `networks: [{ network: "eip155:9745", rpcUrls: [https://a.example], ${settings} }]`;
}
