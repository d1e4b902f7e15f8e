import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
  type Devnet,
  type Program,
  startDevnet,
  startProgram,
  withDatabase,
} from "@coinslot/devnet";
import { useProgram } from "@coinslot/devnet/use-program";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { exitCode } from "./exit-code.ts";
import { startTestSeller, type TestSeller } from "./testing/test-seller.ts";

const compiled = useProgram(new URL("./main.ts", import.meta.url));
const coinslot = () => [process.execPath, compiled()];
const main = fileURLToPath(new URL("./main.ts", import.meta.url));
const tsx = import.meta.resolve("tsx");
const source = [process.execPath, "--conditions=source", "--import", tsx, main];

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "coinslot-cli-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  await rm(`${folder}-state`, { recursive: true, force: true });
});

/** Starts a program in the folder; it ends with the test. */
function start(
  [command = "", ...args]: readonly string[],
  env: Record<string, string> = {},
): Program {
  // A record of payments is for the test, and not for the user who runs it.
  const own = { XDG_STATE_HOME: `${folder}-state`, ...env };
  const program = startProgram(command, args, { folder, env: own });
  onTestFinished(program.kill);
  return program;
}

/** The shell command for these arguments. */
function inShell(...words: string[]): string {
  return [...coinslot(), ...words].map((word) => `'${word}'`).join(" ");
}

describe("the coinslot process", () => {
  it("starts a chain, prints its environment, and stops it at Ctrl-C", async () => {
    const chain = start([...source, "devnet", "--json"]);
    // Messages for people and data for programs go to separate streams.
    await Promise.all([chain.waitFor(/Ctrl-C stops it/), chain.waitFor(/^\}$/m)]);
    const { rpcUrl, environment } = JSON.parse(chain.stdout());
    expect(environment).toMatchObject({
      COINSLOT_NETWORK: "eip155:9745",
      COINSLOT_RPC_URL: rpcUrl,
      WALLET_PRIVATE_KEY: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      FLOAT_PRIVATE_KEY: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    });
    chain.child.kill("SIGINT");
    expect(await chain.ended).toBe(exitCode.done);
    await expect(fetch(rpcUrl)).rejects.toThrow();
  });

  it("ends silently when its reader has left", async () => {
    const piped = `${inShell("bridge", "chains", "--json")} | head -n 1`;
    const { ended, stdout, stderr } = start(["sh", "-c", piped]);
    expect(await ended).toBe(0);
    expect([stdout(), stderr()]).toEqual(["[\n", ""]);
  });
});

let devnet: Devnet;
let seller: TestSeller;
beforeAll(async () => {
  devnet = await startDevnet({ accountCount: 4 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 20_000n });
  seller = await startTestSeller({ devnet, ledger: "sqlite::memory:" });
  const lines = {
    COINSLOT_NETWORK: devnet.network,
    COINSLOT_RPC_URL: devnet.rpcUrl,
    WALLET_PRIVATE_KEY: devnet.accounts.buyer.privateKey,
  };
  const text = Object.entries(lines).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(join(folder, ".env"), text.join(""), { mode: 0o600 });
});
afterAll(async () => {
  await seller?.stop();
  await devnet?.stop();
});

/** A ledger whose tables are views without an end, or one of them. */
async function writeEndlessLedger(only?: string): Promise<string> {
  const file = join(await mkdtemp(join(folder, "ledger-")), "ledger.db");
  const made = `sqlite:${file}.made`;
  const own = await startTestSeller({ devnet, ledger: made });
  if (only !== undefined) {
    // Reading begins with the rows of other tables.
    const words = [...coinslot(), "pay", `${own.url}/weather`, "--yes"];
    const { ended, printed } = start(words, { COINSLOT_ENV_FILE: join(folder, ".env") });
    expect(await ended, printed()).toBe(exitCode.done);
  }
  await own.stop();
  await withDatabase(made, async ({ read, execute }) => {
    const tables = await read(`select name from sqlite_schema where type = 'table'
      and name not like 'sqlite%' and name <> 'coinslot_migrations'`);
    await execute("pragma legacy_alter_table = on");
    for (const { name } of tables.filter((each) => only === undefined || each.name === only)) {
      await execute(`alter table ${name} rename to ${name}_kept;
        create view ${name} as
          with recursive numbers(n) as (select 1 union all select n + 1 from numbers)
          select kept.* from (select max(n) from numbers) cross join ${name}_kept as kept`);
    }
    await execute(`vacuum into '${file}'`);
  });
  return `sqlite:${file}`;
}

/** Resolves once a program has read the file for a second without a pause, or has ended. */
async function untilRead(url: string, { child }: Program): Promise<void> {
  await withDatabase(url, async ({ execute }) => {
    await execute("pragma busy_timeout = 1000");
    let isRead = false;
    while (!isRead && child.exitCode === null) {
      // Leaves the file free for most of the time.
      await sleep(100);
      isRead = await execute("begin exclusive; commit").then(
        () => false,
        () => true,
      );
    }
  });
}

describe("coinslot in a folder with a hostile ledger", () => {
  const channel = `0x${"1".repeat(64)}`;
  it.each<[line: string, only?: string]>([
    ["payments list"],
    ["payments export"],
    ["books show"],
    ["books export"],
    ["books check --no-chain"],
    ["books check --no-chain", "book_periods"],
    ["stats"],
    ["doctor"],
    ["refunds create 019aa2b5c1d0a1b2c3d4e5f6a7b8c9d0 --yes"],
    ["refunds approve 019aa2b5c1d0a1b2c3d4e5f6a7b8c9d0 --yes"],
    [`channels refund ${channel} --yes`],
  ])("ends at Ctrl-C amid a query that has no end: %s", async (line, only) => {
    const ledger = await writeEndlessLedger(only);
    const words = [...coinslot(), ...line.split(" ")];
    const reader = start(words, { COINSLOT_LEDGER: ledger });
    await untilRead(ledger, reader);
    reader.child.kill("SIGINT");
    await reader.ended;
    expect(reader.child.signalCode, reader.printed()).toBe("SIGINT");
  });
});

describe("coinslot pay with failing output", () => {
  /** Runs with an explicit file, so that no folder needs an allowance. */
  function startInShell(line: string): Program {
    return start(["sh", "-c", line], { COINSLOT_ENV_FILE: join(folder, ".env") });
  }

  it.each([[""], [" --json"]])(
    "reports the payment when the disk behind%s is full",
    async (option) => {
      const line = `${inShell("pay", `${seller.url}/weather?full${option.length}`, "--yes")}${option} > /dev/full`;
      const { ended, stderr } = startInShell(line);
      expect(await ended).toBe(exitCode.unclear);
      expect(stderr()).toContain("It was paid, and the answer could not be written: ENOSPC");
      expect(stderr()).toContain("coinslot pay --resume");
    },
  );

  it("reports the payment when the answer's reader leaves early", async () => {
    await writeFile(join(folder, "long.txt"), "x".repeat(99_000));
    const words = ["pay", `${seller.url}/echo`, "--yes", "-d", "@long.txt"];
    const line = `(${inShell(...words)}; echo "ended with $?" >&2) | head -c 10`;
    const { ended, stdout, stderr } = startInShell(line);
    expect(await ended).toBe(0);
    expect(stdout()).toBe("x".repeat(10));
    expect(stderr()).toContain("It was paid, and the reader of the output left");
    expect(stderr()).toContain("coinslot pay --resume");
    expect(stderr()).toContain("ended with 0");
  });

  it("continues when it cannot print at all", async () => {
    const line = `${inShell("pay", `${seller.url}/weather`, "--yes")} 2> /dev/full`;
    const { ended, stdout } = startInShell(line);
    expect(await ended).toBe(exitCode.done);
    expect(stdout()).toBe('{"forecast":"sun"}');
  });
});

describe("a read-only command with failing output", () => {
  it("fails with an error when the disk is full", async () => {
    const line = `${inShell("wallet", "--json")} > /dev/full`;
    const { ended, stderr } = start(["sh", "-c", line]);
    expect(await ended).toBe(exitCode.failed);
    expect(stderr()).toContain("The output could not be written: ENOSPC");
  });
});

describe("coinslot bridge with failing output", () => {
  it("reports possibly moved tokens only where it moves some", async () => {
    const chains = start(["sh", "-c", `${inShell("bridge", "chains", "--json")} > /dev/full`]);
    expect(await chains.ended).toBe(exitCode.failed);
    expect(chains.stderr()).toContain("The output could not be written: ENOSPC");
  });
});

describe("coinslot pay on a terminal", () => {
  /** Runs it behind a pseudo-terminal. */
  function onTerminal(env: Record<string, string> = {}) {
    const line = inShell("pay", `${seller.url}/weather`);
    const words = ["script", "--quiet", "--return", "--command", line, "/dev/null"];
    const user = { TERM: "xterm", SHELL: "/bin/sh", XDG_STATE_HOME: `${folder}-state` };
    return start(words, { ...user, ...env });
  }

  it("takes keys from the folder's .env file, prompts in colour, and pays after a yes", async () => {
    const { child, stdout, ended, waitFor } = onTerminal();
    await waitFor(/Use these\? \[y\/N\] /);
    child.stdin.write("y\r");
    await waitFor(/Pay\? \[y\/N\] /);
    expect(stdout()).toContain("\u001b[2mcosts");
    child.stdin.write("y\r");
    expect(await ended).toBe(exitCode.done);
    // The receipt begins a line of its own.
    expect(stdout()).toMatch(/\{"forecast":"sun"\}\r?\n\S*paid/);
    expect(stdout()).not.toContain(devnet.accounts.buyer.privateKey);
  });

  it("pays nothing after Ctrl-C, and prints no colour under NO_COLOR", async () => {
    const { child, stdout, ended, waitFor } = onTerminal({ NO_COLOR: "1" });
    await waitFor(/Pay\? \[y\/N\] /);
    expect(stdout()).toContain("\ncosts ");
    child.stdin.write("\u0003");
    expect(await ended).toBe(exitCode.interrupted);
    expect(stdout()).not.toContain("forecast");
    expect(stdout()).toContain("Interrupted. No payment was sent: nothing can be charged.");
    expect(stdout()).not.toContain("continue without");
  });
});
