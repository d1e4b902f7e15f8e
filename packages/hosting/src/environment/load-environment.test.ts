import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Setting } from "../setting.ts";
import { EnvironmentFileError, loadEnvironment } from "./load-environment.ts";
import type { Environment } from "./read-secret.ts";

const explanation = "";
const settings: readonly Setting[] = [
  { name: "COINSLOT_NETWORK", explanation },
  { name: "COINSLOT_RPC_URL", explanation },
  { name: "COINSLOT_RPC_URL_<CHAIN_ID>", explanation },
  { name: "INDEXER_RPC_URLS_<CHAIN>", explanation },
  { name: "WALLET_SEED_PHRASE", explanation },
  { name: "WALLET_PRIVATE_KEY", explanation },
  { name: "SELLER_SEED_PHRASE", explanation },
  { name: "PAY_TO", explanation },
  { name: "COINSLOT_OPERATOR_URL", explanation },
  { name: "COINSLOT_OPERATOR_KEY", explanation },
  { name: "INDEXER_URL", explanation },
  { name: "INDEXER_API_KEY", explanation },
  { name: "INDEXER_CONFIG", explanation },
];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "coinslot-environment-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The variables that are taken from a file beside an environment. */
function taken(file: Record<string, string>, environment: Environment = {}) {
  const lines = Object.entries(file).map(([name, value]) => `${name}=${value}\n`);
  writeFileSync(join(folder, ".env"), lines.join(""));
  const loaded = loadEnvironment({ environment, folder, settings });
  expect(loaded.env).toEqual({ ...environment, ...loaded.file?.values });
  return loaded.file?.values;
}

describe("an .env file", () => {
  it("adds the program's settings and no other variables to the environment", () => {
    const ours = {
      COINSLOT_NETWORK: "eip155:9745",
      COINSLOT_RPC_URL_988: "https://a.example",
      COINSLOT_RPC_URL_FILE: "/run/secrets/url",
      INDEXER_RPC_URLS_PLASMA: "https://b.example",
    };
    const others = {
      NODE_TLS_REJECT_UNAUTHORIZED: "0",
      NODE_OPTIONS: "--require=./evil.cjs",
      NODE_EXTRA_CA_CERTS: "./evil.pem",
      LD_PRELOAD: "./evil.so",
      HTTPS_PROXY: "http://evil.example",
      PATH: "./bin",
      HOME: ".",
      XDG_STATE_HOME: ".",
      COINSLOT_ENV_FILE: "other.env",
      COINSLOT_RPC_URL_X: "https://c.example",
      XCOINSLOT_NETWORK: "eip155:1",
    };
    expect(taken({ ...ours, ...others })).toEqual(ours);
  });

  it("is parsed like dotenv: quotes, comments, exports, and no expansion", () => {
    writeFileSync(
      join(folder, ".env"),
      "# a comment\nexport PAY_TO=\"two words\" # behind\nWALLET_SEED_PHRASE='a $HOME'\n\nCOINSLOT_NETWORK: eip155:1\n",
    );
    const { env } = loadEnvironment({ environment: {}, folder, settings });
    expect(env).toEqual({
      PAY_TO: "two words",
      WALLET_SEED_PHRASE: "a $HOME",
      COINSLOT_NETWORK: "eip155:1",
    });
  });

  it("is optional in the folder, and required when the environment names it", () => {
    expect(loadEnvironment({ environment: { A: "1" }, folder, settings })).toEqual({
      env: { A: "1" },
      file: undefined,
    });
    const file = join(folder, "other.env");
    const environment = { COINSLOT_ENV_FILE: file };
    const load = () => loadEnvironment({ environment, folder, settings });
    expect(load).toThrow("cannot be read");
    writeFileSync(file, "PAY_TO=1\n");
    expect(load().file).toEqual({ path: file, isOfFolder: false, values: { PAY_TO: "1" } });
  });
});

describe("an .env file of a hostile folder", () => {
  const load = () => loadEnvironment({ environment: {}, folder, settings });

  it("is refused above 64 KiB, before it is parsed", () => {
    writeFileSync(join(folder, ".env"), "PAY_TO=1\n".padEnd(65_536, "#"));
    expect(load().env).toEqual({ PAY_TO: "1" });
    writeFileSync(join(folder, ".env"), "PAY_TO=1\n".padEnd(65_537, "#"));
    expect(load).toThrow(EnvironmentFileError);
  });

  it.each(["\n", " \n", "\r", "\u2028"])(
    "is refused at once where it consists of %j",
    { timeout: 1_000 },
    (blank) => {
      writeFileSync(join(folder, ".env"), blank.repeat(65_536 / Buffer.byteLength(blank)));
      expect(load).toThrow(/more than 1000 blanks in a row/);
      writeFileSync(join(folder, ".env"), `${blank.repeat(499)}PAY_TO=1\n`.repeat(40));
      expect(load().env).toEqual({ PAY_TO: "1" });
    },
  );

  it("names no file that is too large, or never ends", () => {
    const sparse = join(folder, "sparse");
    writeFileSync(sparse, "");
    truncateSync(sparse, 1_900_000_000);
    for (const named of [sparse, "/proc/self/pagemap"]) {
      for (const name of ["SELLER_SEED_PHRASE_FILE", "COINSLOT_RPC_URL_FILE", "INDEXER_CONFIG"]) {
        writeFileSync(join(folder, ".env"), `${name}=${named}\n`);
        expect(load).toThrow(`.env: ${name} does not name a regular file of at most 1 MiB`);
      }
    }
    const absent = { SELLER_SEED_PHRASE_FILE: join(folder, "absent") };
    expect(taken(absent)).toEqual(absent);
  });

  it("is refused as a pipe or a device", () => {
    execFileSync("mkfifo", [join(folder, ".env")]);
    expect(load).toThrow("regular file");
    rmSync(join(folder, ".env"));
    symlinkSync("/dev/zero", join(folder, ".env"));
    expect(load).toThrow("regular file");
    rmSync(join(folder, ".env"));
    execFileSync("mkfifo", [join(folder, "pipe")]);
    for (const named of [join(folder, "pipe"), `" ${folder}/pipe "`, "/dev/zero"]) {
      writeFileSync(join(folder, ".env"), `WALLET_PRIVATE_KEY_FILE=${named}\n`);
      expect(load).toThrow(".env: WALLET_PRIVATE_KEY_FILE does not name a regular file");
      writeFileSync(join(folder, ".env"), `INDEXER_CONFIG=${named}\n`);
      expect(load).toThrow(".env: INDEXER_CONFIG does not name a regular file");
      // The environment overrides it, and it is not read.
      expect(taken({ WALLET_SEED_PHRASE_FILE: named }, { WALLET_PRIVATE_KEY: "1" })).toEqual({});
    }
  });
});

describe("the environment", () => {
  it("overrides the .env file for the same name, unless it is empty", () => {
    expect(taken({ PAY_TO: "2" }, { PAY_TO: "1" })).toEqual({});
    expect(taken({ PAY_TO: "2" }, { PAY_TO: "" })).toEqual({ PAY_TO: "2" });
  });

  it("keeps its operator's key from the seller that an .env file names", () => {
    const file = { COINSLOT_OPERATOR_URL: "https://other.example", COINSLOT_OPERATOR_KEY: "other" };
    expect(taken(file)).toEqual(file);
    expect(taken(file, { COINSLOT_OPERATOR_KEY: "own" })).toEqual({});
    expect(taken(file, { COINSLOT_OPERATOR_KEY_FILE: "/run/secrets/key" })).toEqual({});
  });

  it("keeps its key of an indexing service from the one that an .env file names", () => {
    const file = { INDEXER_URL: "https://other.example", INDEXER_API_KEY: "other" };
    expect(taken(file)).toEqual(file);
    expect(taken(file, { INDEXER_API_KEY: "own" })).toEqual({});
    expect(taken(file, { INDEXER_API_KEY_FILE: "/run/secrets/key" })).toEqual({});
  });

  it("overrides the .env file for every form of an account", () => {
    const file = { WALLET_SEED_PHRASE: "words", SELLER_SEED_PHRASE: "others" };
    const environment = { WALLET_PRIVATE_KEY_FILE: "/run/secrets/key", PAY_TO: "0x1" };
    expect(taken(file, environment)).toEqual({});
  });

  const url = "https://mine.example";
  const evil = "https://evil.example";
  it.each<[string, Environment, Record<string, string>, string[]]>([
    [
      "general in the environment, numbered in the file",
      { COINSLOT_NETWORK: "eip155:9745", COINSLOT_RPC_URL: url },
      { COINSLOT_RPC_URL_9745: evil, COINSLOT_RPC_URL_988: evil },
      ["COINSLOT_RPC_URL_988"],
    ],
    [
      "numbered in the environment, general in the file",
      { COINSLOT_RPC_URL_9745: url },
      { COINSLOT_NETWORK: "eip155:9745", COINSLOT_RPC_URL: evil, COINSLOT_RPC_URL_988: evil },
      ["COINSLOT_RPC_URL_988"],
    ],
    [
      "numbered in the environment as a file, numbered in the file",
      { COINSLOT_RPC_URL_9745_FILE: "/run/secrets/url" },
      { COINSLOT_RPC_URL_9745: evil },
      [],
    ],
    [
      "general in the environment without a network, both in the file",
      { COINSLOT_RPC_URL: url },
      { COINSLOT_NETWORK: "eip155:9745", COINSLOT_RPC_URL_FILE: evil, COINSLOT_RPC_URL_9745: evil },
      ["COINSLOT_NETWORK"],
    ],
    [
      "another network in the environment",
      { COINSLOT_NETWORK: "eip155:988" },
      { COINSLOT_NETWORK: "eip155:9745", COINSLOT_RPC_URL: evil, COINSLOT_RPC_URL_988: evil },
      ["COINSLOT_RPC_URL_988"],
    ],
    [
      "the same network in the environment, which names no nodes",
      { COINSLOT_NETWORK: "eip155:9745" },
      { COINSLOT_NETWORK: "eip155:9745", COINSLOT_RPC_URL: evil },
      ["COINSLOT_RPC_URL"],
    ],
    [
      "nodes of another network in the environment",
      { COINSLOT_RPC_URL_988: url },
      { COINSLOT_NETWORK: "eip155:9745", COINSLOT_RPC_URL: evil },
      ["COINSLOT_NETWORK", "COINSLOT_RPC_URL"],
    ],
  ])("overrides the .env file for nodes of a network: %s", (_name, environment, file, names) => {
    expect(Object.keys(taken(file, environment) ?? {})).toEqual(names);
  });
});
