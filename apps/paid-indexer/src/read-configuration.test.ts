import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Setting } from "@coinslot/hosting";
import { ConfigurationError, knownChains } from "@coinslot/protocol";
import { expect, it, onTestFinished } from "vitest";
import { readConfiguration } from "./read-configuration.ts";
import { settings } from "./settings.ts";

const seed = "test test test test test test test test test test test junk";
const relayer = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const good = {
  COINSLOT_NETWORK: "eip155:9745",
  COINSLOT_RPC_URL: "https://one.example, https://two.example",
  FACILITATOR_SEED_PHRASE: seed,
  PAY_TO: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
  INDEXER_URL: "https://indexer.example/",
  INDEXER_API_KEY: "csk_secret",
};

function problemsOf(env: Record<string, string | undefined>): readonly string[] {
  try {
    readConfiguration(env);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return error.problems;
  }
}

it("the configuration takes the required settings, and defaults for the rest", () => {
  expect(readConfiguration(good)).toMatchObject({
    host: "127.0.0.1",
    port: 4021,
    trustProxy: 0,
    logLevel: "info",
    terms: { network: "eip155:9745", price: 1_000n, payTo: good.PAY_TO },
    facilitator: {
      networks: [{ rpcUrls: ["https://one.example", "https://two.example"] }],
      ledger: "sqlite:./coinslot.db",
    },
    upstream: { remote: { url: "https://indexer.example", apiKey: "csk_secret" } },
  });
});

it("the configuration takes the public URL, without a trailing slash", () => {
  const coinslotPublicUrl = "https://shop.example/index/";
  const { publicUrl } = readConfiguration({ ...good, COINSLOT_PUBLIC_URL: coinslotPublicUrl });
  expect(publicUrl).toBe("https://shop.example/index");
});

it("the configuration indexes in this process where no remote service is named", () => {
  const { upstream } = readConfiguration({
    ...good,
    INDEXER_URL: undefined,
    INDEXER_API_KEY: undefined,
    INDEXER_CHAINS: "plasma",
    INDEXER_RPC_URLS_PLASMA: "https://one.example",
  });
  expect(upstream).toMatchObject({ embedded: { chains: [{ name: "plasma", chainId: 9745 }] } });
});

it("the configuration lists all missing settings at once, by name", () => {
  const problems = problemsOf({});
  for (const name of [
    "COINSLOT_NETWORK: ",
    "COINSLOT_RPC_URL: ",
    "PAY_TO: ",
    "FACILITATOR_SEED_PHRASE or FACILITATOR_PRIVATE_KEY: ",
    "Set INDEXER_CHAINS",
  ]) {
    expect(problems.filter((problem) => problem.includes(name))).toHaveLength(1);
  }
  expect(problems).toHaveLength(5);
});

it("the configuration takes each known chain, and names them all for another one", () => {
  for (const { network, tokens } of knownChains) {
    const { terms } = readConfiguration({ ...good, COINSLOT_NETWORK: network });
    expect(terms).toMatchObject({ network, asset: tokens[0] });
  }
  const [problem, ...others] = problemsOf({ ...good, COINSLOT_NETWORK: "eip155:4242" });
  expect(others).toEqual([]);
  for (const { network, name } of knownChains) expect(problem).toContain(`${network} (${name})`);
});

it("the configuration lists all faults at once, and repeats no secret", () => {
  const problems = problemsOf({
    COINSLOT_NETWORK: "eip155:4242",
    COINSLOT_RPC_URL: "ws://user:secret@node",
    COINSLOT_LEDGER: "mysql://user:secret@host",
    FACILITATOR_SEED_PHRASE: `secret ${seed}`,
    FACILITATOR_PRIVATE_KEY: "0xsecret",
    PAY_TO: "0x70997970c51812dc3A010C7d01b50e0d17dc79C8",
    PAID_INDEXER_PRICE: "$0.0000001",
    PAID_INDEXER_PORT: "70000",
    PAID_INDEXER_TRUST_PROXY: "yes",
    COINSLOT_PUBLIC_URL: "https://user:secret@shop.example",
    PAID_INDEXER_LOG_LEVEL: "loud",
    INDEXER_URL: "https://user:secret@indexer.example",
    INDEXER_API_KEY: "secret\u00e9",
  });
  expect(problems.map((problem) => problem.split(/: | and /, 1)[0])).toEqual([
    "PAID_INDEXER_PORT",
    "PAID_INDEXER_TRUST_PROXY",
    "COINSLOT_PUBLIC_URL",
    "PAID_INDEXER_LOG_LEVEL",
    "COINSLOT_NETWORK",
    "PAID_INDEXER_PRICE",
    "PAY_TO",
    "FACILITATOR_SEED_PHRASE",
    "COINSLOT_RPC_URL",
    "FACILITATOR_SEED_PHRASE",
    "COINSLOT_LEDGER",
    "INDEXER_URL",
    "INDEXER_API_KEY",
  ]);
  expect(problems.join()).not.toContain("secret");
});

it("the configuration names the wrong one of the two relayer settings", () => {
  const facilitatorSeedPhrase = "secret words";
  expect(problemsOf({ ...good, FACILITATOR_SEED_PHRASE: facilitatorSeedPhrase })).toEqual([
    expect.stringMatching(/^FACILITATOR_SEED_PHRASE: has 2 words/),
  ]);
  const key = { FACILITATOR_SEED_PHRASE: "", FACILITATOR_PRIVATE_KEY: "0xsecret" };
  expect(problemsOf({ ...good, ...key })).toEqual([
    expect.stringMatching(/^FACILITATOR_PRIVATE_KEY: must be 32 bytes in hex/),
  ]);
});

it("the configuration reports a wrong checksum of an address", () => {
  const payTo = good.PAY_TO.replace("C8", "c8");
  expect(problemsOf({ ...good, PAY_TO: payTo })).toEqual([
    expect.stringMatching(/^PAY_TO: .*checksum/),
  ]);
});

it("the configuration refuses a URL with a password, even without a user", () => {
  expect(problemsOf({ ...good, INDEXER_URL: "https://:secret@indexer.example" })).toEqual([
    expect.stringMatching(/^INDEXER_URL: must begin with .*without a user/),
  ]);
});

it("the configuration refuses the relayer as the recipient of payments", () => {
  expect(problemsOf({ ...good, PAY_TO: relayer })).toEqual([
    expect.stringMatching(/^PAY_TO: is the facilitator's own account/),
  ]);
});

it("the configuration takes a service key with a remote service alone", () => {
  const env = { ...good, INDEXER_CHAINS: "plasma", INDEXER_RPC_URLS_PLASMA: "https://one.example" };
  expect(problemsOf({ ...env, INDEXER_URL: "" })).toEqual([
    expect.stringMatching(/^INDEXER_API_KEY: is for a remote service/),
  ]);
  expect(problemsOf({ ...env, INDEXER_API_KEY: "" })).toEqual([
    expect.stringMatching(/^INDEXER_API_KEY: is not set/),
  ]);
});

it("the configuration reads secrets from files", async () => {
  const directory = await mkdtemp(join(tmpdir(), "coinslot-paid-indexer-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, "key");
  await writeFile(file, "csk_from-file\n");
  const env = { ...good, INDEXER_API_KEY: undefined };
  const { upstream } = readConfiguration({ ...env, INDEXER_API_KEY_FILE: file });
  expect(upstream).toMatchObject({ remote: { apiKey: "csk_from-file" } });
  expect(problemsOf({ ...env, INDEXER_API_KEY_FILE: `${file}s` })).toContain(
    `INDEXER_API_KEY_FILE: ${file}s cannot be read: the file does not exist`,
  );
});

it("the configuration has one line per setting, as in the README", async () => {
  const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
  const rows = settings.map((setting: Setting) => {
    const { name, explanation, defaultValue, isOptional = false } = setting;
    const unset = isOptional ? "" : "has to be set";
    return `| \`${name}\` | ${defaultValue ? `\`${defaultValue}\`` : unset} | ${explanation} |`;
  });
  expect(readme).toContain(rows.join("\n"));
});
