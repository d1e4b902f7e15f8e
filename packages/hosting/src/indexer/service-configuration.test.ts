import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { IndexerConfigurationError } from "@coinslot/indexer";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  type IndexerSources,
  readIndexerDatabaseUrl,
  readIndexerServiceConfiguration,
} from "./service-configuration.ts";

const chain = { INDEXER_CHAINS: "plasma", INDEXER_RPC_URLS_PLASMA: "https://rpc.example/key" };

async function writeConfiguration(name: string, text: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "coinslot-configuration-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, name);
  await writeFile(path, text);
  return path;
}

function problemsOf(sources: IndexerSources): readonly string[] {
  try {
    readIndexerServiceConfiguration(sources);
  } catch (error) {
    if (error instanceof IndexerConfigurationError) return error.problems;
    throw error;
  }
  return [];
}

describe("the configuration of the indexing service", () => {
  it("reads endpoints by the names of sellers and buyers, after its own", async () => {
    const urlsOf = (env: Record<string, string>) => {
      const { indexer } = readIndexerServiceConfiguration({
        env: { INDEXER_CHAINS: "plasma", ...env },
      });
      return indexer.chains.map(({ rpcUrls }) => rpcUrls);
    };
    const shared = { COINSLOT_RPC_URL: "https://shared.example, https://second.example" };
    const numbered = { COINSLOT_RPC_URL_9745: "https://numbered.example" };
    const plasma = { COINSLOT_NETWORK: "eip155:9745" };
    expect(urlsOf({ ...shared, ...plasma })).toEqual([
      ["https://shared.example", "https://second.example"],
    ]);
    expect(urlsOf(numbered)).toEqual([["https://numbered.example"]]);
    expect(urlsOf({ ...numbered, ...shared, COINSLOT_NETWORK: "eip155:988" })).toEqual([
      ["https://numbered.example"],
    ]);
    const own = { INDEXER_RPC_URLS_PLASMA: "https://own.example" };
    expect(urlsOf({ ...own, ...numbered, ...shared, ...plasma })).toEqual([
      ["https://own.example"],
    ]);
    expect(() => urlsOf({ ...shared })).toThrow(
      "COINSLOT_RPC_URL_9745 or INDEXER_RPC_URLS_PLASMA: is not set",
    );
  });

  it("requires a chain and its endpoints only", () => {
    const configuration = readIndexerServiceConfiguration({ env: chain });
    expect(configuration).toMatchObject({
      host: "127.0.0.1",
      port: 8080,
      authStatus: "specified",
      trustProxy: 0,
      logLevel: "info",
    });
    expect(configuration.indexer.chains).toMatchObject([
      {
        name: "plasma",
        chainId: 9745,
        rpcUrls: ["https://rpc.example/key"],
        tokens: [{ name: "usdt" }],
      },
    ]);
  });

  it("is read from the environment", () => {
    const env = {
      INDEXER_CHAINS: "plasma, stable",
      INDEXER_RPC_URLS_PLASMA: "https://one.example, https://two.example",
      INDEXER_RPC_URLS_STABLE: "https://three.example",
      INDEXER_START_BLOCK_STABLE: "700",
      INDEXER_DATABASE: "postgres://localhost/indexer",
      INDEXER_HOST: "0.0.0.0",
      INDEXER_PORT: "9000",
      INDEXER_AUTH_STATUS: "live",
      INDEXER_TRUST_PROXY: "1",
      INDEXER_LOG_LEVEL: "warn",
    };
    expect(readIndexerServiceConfiguration({ env })).toMatchObject({
      host: "0.0.0.0",
      port: 9000,
      authStatus: "live",
      trustProxy: 1,
      logLevel: "warn",
      indexer: {
        database: "postgres://localhost/indexer",
        chains: [
          { name: "plasma", rpcUrls: ["https://one.example", "https://two.example"] },
          { name: "stable", tokens: [{ startBlock: 700 }] },
        ],
      },
    });
  });

  it("is read from a YAML or a JSON file, overridden by the environment", async () => {
    const yaml = await writeConfiguration(
      "indexer.yaml",
      `
port: 9000
database: sqlite:./from-file.db
chains:
  - preset: plasma
    rpcUrls: [https://file.example]
    startBlock: 5
  - name: mine
    chainId: 31337
    rpcUrls: [http://127.0.0.1:8545]
    tokens:
      - { name: usdt, address: "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb", decimals: 6 }
spotCheck: { everyMs: 1000 }
`,
    );
    const env = {
      INDEXER_CONFIG: yaml,
      INDEXER_PORT: "9001",
      INDEXER_RPC_URLS_MINE: "http://other:1",
    };
    expect(readIndexerServiceConfiguration({ env })).toMatchObject({
      port: 9001,
      indexer: {
        database: "sqlite:./from-file.db",
        spotCheck: { everyMs: 1000 },
        chains: [
          { name: "plasma", rpcUrls: ["https://file.example"], tokens: [{ startBlock: 5 }] },
          { name: "mine", rpcUrls: ["http://other:1"] },
        ],
      },
    });
    const json = await writeConfiguration(
      "indexer.json",
      JSON.stringify({ chains: [{ preset: "stable", rpcUrls: ["https://file.example"] }] }),
    );
    expect(readIndexerServiceConfiguration({ env: {}, file: json }).indexer.chains).toMatchObject([
      { name: "stable", chainId: 988 },
    ]);
  });

  it("reads a database URL from a file, as containers provide secrets", async () => {
    const path = await writeConfiguration("url", "postgres://user:secret@db/indexer\n");
    const env = { ...chain, INDEXER_DATABASE_FILE: path };
    expect(readIndexerServiceConfiguration({ env }).indexer.database).toBe(
      "postgres://user:secret@db/indexer",
    );
    expect(readIndexerDatabaseUrl({ env })).toBe("postgres://user:secret@db/indexer");
    expect(readIndexerDatabaseUrl({ env: {} })).toBe("sqlite:./indexer.db");
    expect(problemsOf({ env: { ...chain, INDEXER_DATABASE_FILE: `${path}-not` } })).toHaveLength(1);
    expect(problemsOf({ env: { ...env, INDEXER_DATABASE: "sqlite:./x.db" } })).toHaveLength(1);
  });

  it("reports all faults at once, by the name of their setting, with the remedy", () => {
    const problems = problemsOf({
      env: {
        INDEXER_CHAINS: "plasma,atlantis,stable",
        INDEXER_RPC_URLS_PLASMA: "ftp://user:secret@host",
        INDEXER_RPC_URLS_ATLANTIS: "https://rpc.example",
        INDEXER_START_BLOCK_PLASMA: "latest",
        INDEXER_PORT: "eighty",
        INDEXER_AUTH_STATUS: "open",
        INDEXER_TRUST_PROXY: "yes",
        INDEXER_LOG_LEVEL: "loud",
        INDEXER_DATABASE: "mysql://user:secret@host/db",
      },
    });
    const text = problems.join("\n");
    for (const words of [
      "INDEXER_PORT: must be a port",
      "INDEXER_AUTH_STATUS: must be specified or live",
      "INDEXER_TRUST_PROXY: must be the number of proxies",
      "INDEXER_LOG_LEVEL: must be one of",
      "INDEXER_DATABASE: must begin with sqlite: or postgres://",
      "INDEXER_RPC_URLS_STABLE: is not set",
      "INDEXER_START_BLOCK_PLASMA: must be the number of a block",
      "atlantis is not known. Known are ethereum,",
      "rpcUrls[0]: must be a URL that begins with http:// or https://",
    ]) {
      expect(text).toContain(words);
    }
    expect(problems).toHaveLength(9);
    expect(text).not.toContain("secret");
  });

  it("names the first steps where nothing is set", () => {
    expect(problemsOf({ env: {} })).toEqual([expect.stringMatching(/Set INDEXER_CHAINS to names/)]);
  });

  it("refuses malformed files, and unknown settings", async () => {
    const broken = await writeConfiguration("broken.yaml", "chains: [");
    expect(problemsOf({ env: chain, file: broken })).toEqual([
      expect.stringContaining("cannot be read as YAML or JSON"),
    ]);
    const leaky = await writeConfiguration(
      "leaky.yaml",
      "port: 1\ndatabase: 'postgres://user:secret@db'x",
    );
    const [problem] = problemsOf({ env: chain, file: leaky });
    expect(problem).toMatch(/cannot be read as YAML or JSON.*line 2/);
    expect(problem).not.toContain("secret");
    const list = await writeConfiguration("list.yaml", "- 1");
    expect(problemsOf({ env: chain, file: list })).toEqual([expect.stringContaining("mapping")]);
    expect(problemsOf({ env: chain, file: "/does/not/exist.yaml" })).toHaveLength(1);
    const typo = await writeConfiguration("typo.yaml", "databse: sqlite:./x.db");
    expect(problemsOf({ env: chain, file: typo }).join()).toContain("databse");
  });

  it("never throws another kind of error", () => {
    const names = fc.constantFrom(
      "INDEXER_CHAINS",
      "INDEXER_RPC_URLS_PLASMA",
      "INDEXER_START_BLOCK_PLASMA",
      "INDEXER_PORT",
      "INDEXER_DATABASE",
      "INDEXER_TRUST_PROXY",
      "INDEXER_RPC_URLS___PROTO__",
    );
    fc.assert(
      fc.property(fc.dictionary(names, fc.string()), (env) => {
        for (const problem of problemsOf({ env })) expect(problem).toMatch(/\w/);
      }),
    );
  });
});
