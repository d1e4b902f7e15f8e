import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { loadEnvironment } from "./load-environment.ts";
import { inFolder } from "./testing/run-coinslot.ts";

it("the folder's .env file adds the settings of all commands, and no other variables", async () => {
  await inFolder(async (folder) => {
    const ours = {
      WALLET_PRIVATE_KEY: "0x1",
      WALLET_SEED_PHRASE_FILE: "seed",
      SELLER_SEED_PHRASE: "words",
      PAY_TO: "0x2",
      FACILITATOR_SEED_PHRASE: "more words",
      FACILITATOR_PORT: "4022",
      INDEXER_CHAINS: "plasma",
      BRIDGE_RPC_URL: "https://a.example",
      COINSLOT_TOKENS: "eip155:9745/0x3",
      COINSLOT_LEDGER: "sqlite:./a.db",
    };
    const others = { NODE_TLS_REJECT_UNAUTHORIZED: "0", LD_PRELOAD: "./evil.so", A: "1" };
    const lines = Object.entries({ ...ours, ...others }).map(([name, value]) => `${name}=${value}`);
    writeFileSync(join(folder, ".env"), lines.join("\n"));
    const { env, file } = loadEnvironment({ B: "2" }, folder);
    expect(env).toEqual({ B: "2", ...ours });
    expect(file).toMatchObject({ isOfFolder: true, values: ours });
  });
});

it("the folder's .env file names no database that gets the password of the environment", async () => {
  await inFolder(async (folder) => {
    const load = (line: string, environment: Record<string, string>) => {
      writeFileSync(join(folder, ".env"), line);
      return () => loadEnvironment(environment, folder);
    };
    const own = { PGPASSWORD: "own" };
    const names = /PGPASSWORD is not sent/;
    const ledger = "COINSLOT_LEDGER=postgres://user@db.example/ledger";
    expect(load(ledger, own)).toThrow(names);
    expect(load("COINSLOT_LEDGER_FILE=./url", own)).toThrow(names);
    expect(load("INDEXER_DATABASE=postgresql://db.example/index", own)).toThrow(names);
    expect(load(ledger, {})).not.toThrow();
    expect(load(ledger, { ...own, COINSLOT_LEDGER: "sqlite:./a.db" })).not.toThrow();
    expect(load(ledger.replace("user", "user:word"), own)).not.toThrow();
    expect(load("COINSLOT_LEDGER=sqlite:./a.db", own)).not.toThrow();
    const home = { HOME: folder };
    writeFileSync(join(folder, ".pgpass"), "db.example:5432:*:*:word\n");
    expect(load(ledger, home)).not.toThrow();
    writeFileSync(join(folder, ".pgpass"), "# mine\n*:*:*:*:word\n");
    expect(load(ledger, home)).toThrow(/password for all hosts in \.pgpass is not sent/);
    expect(load(ledger, { PGPASSFILE: join(folder, ".pgpass") })).toThrow(/is not sent/);
    expect(load(ledger.replace("user", "user:word"), home)).not.toThrow();
  });
});
