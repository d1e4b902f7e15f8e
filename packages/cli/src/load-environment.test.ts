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
    const { env, file } = await loadEnvironment({ B: "2" }, folder);
    expect(env).toEqual({ B: "2", ...ours });
    expect(file).toMatchObject({ isOfFolder: true, values: ours });
  });
});

it("the folder's .env file names no database that gets the password of the environment", async () => {
  await inFolder(async (folder) => {
    const load = (line: string, environment: Record<string, string>) => {
      writeFileSync(join(folder, ".env"), line);
      return loadEnvironment(environment, folder);
    };
    const own = { PGPASSWORD: "own" };
    const names = /PGPASSWORD is not sent/;
    const ledger = "COINSLOT_LEDGER=postgres://user@db.example/ledger";
    await expect(load(ledger, own)).rejects.toThrow(names);
    await expect(load("COINSLOT_LEDGER_FILE=./url", own)).rejects.toThrow(names);
    await expect(load("INDEXER_DATABASE=postgresql://db.example/index", own)).rejects.toThrow(
      names,
    );
    await expect(load(ledger, {})).resolves.toBeDefined();
    await expect(load(ledger, { ...own, COINSLOT_LEDGER: "sqlite:./a.db" })).resolves.toBeDefined();
    await expect(load(ledger.replace("user", "user:word"), own)).resolves.toBeDefined();
    await expect(load("COINSLOT_LEDGER=sqlite:./a.db", own)).resolves.toBeDefined();
    const home = { HOME: folder };
    writeFileSync(join(folder, ".pgpass"), "db.example:5432:*:*:word\n");
    await expect(load(ledger, home)).resolves.toBeDefined();
    writeFileSync(join(folder, ".pgpass"), "# mine\n*:*:*:*:word\n");
    await expect(load(ledger, home)).rejects.toThrow(
      /password for all hosts in \.pgpass is not sent/,
    );
    await expect(load(ledger, { PGPASSFILE: join(folder, ".pgpass") })).rejects.toThrow(
      /is not sent/,
    );
    await expect(load(ledger.replace("user", "user:word"), home)).resolves.toBeDefined();
  });
});

it.each([
  ["INDEXER_CONFIG", "database", "INDEXER_DATABASE"],
  ["FACILITATOR_CONFIG", "ledger", "COINSLOT_LEDGER"],
])(
  "a database in the file that a folder's %s names gets no password of the environment",
  async (variable, setting, database) => {
    await inFolder(async (folder) => {
      const path = join(folder, "settings.yaml");
      const load = (url: string, environment: Record<string, string> = {}, lines = "") => {
        writeFileSync(path, `${setting}: "${url}"\n`);
        writeFileSync(join(folder, ".env"), `${variable}=" ${path} "\n${lines}`);
        return loadEnvironment({ PGPASSWORD: "own", HOME: folder, ...environment }, folder);
      };
      const url = "postgres://user@db.example/all";
      const refused = new RegExp(`PGPASSWORD is not sent.* set ${database} in the environment`);
      await expect(load(url)).rejects.toThrow(refused);
      await expect(load(url, { [database]: " " })).rejects.toThrow(refused);
      await expect(load(url, { [database]: "sqlite:./a.db" })).resolves.toBeDefined();
      await expect(load(url, {}, `${database}=sqlite:./a.db\n`)).resolves.toBeDefined();
      await expect(load(url, { [variable]: path })).resolves.toBeDefined();
      await expect(load("sqlite:./a.db")).resolves.toBeDefined();
      await expect(load(url.replace("user", "user:word"))).resolves.toBeDefined();
      writeFileSync(join(folder, ".pgpass"), "*:*:*:*:word\n");
      await expect(load(url, { PGPASSWORD: "" })).rejects.toThrow(/in \.pgpass is not sent/);
      // Its parser takes many seconds for a megabyte.
      const long = `sqlite:./${"a".repeat(65_536)}`;
      const larger = new RegExp(`larger than 64 KiB.*name it by ${variable} in the environment`);
      await expect(load(long)).rejects.toThrow(larger);
      await expect(load(long, { [variable]: path })).resolves.toBeDefined();
      await expect(load(long, { [database]: "sqlite:./a.db" })).resolves.toBeDefined();
    });
  },
);
