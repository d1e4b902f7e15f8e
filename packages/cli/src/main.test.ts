import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { exitCode } from "./exit-code.ts";
import { startTestSeller, type TestSeller } from "./testing/test-seller.ts";

const node = process.execPath;
const main = fileURLToPath(new URL("./main.ts", import.meta.url));
const coinslot = ["--conditions=source", "--import", import.meta.resolve("tsx"), main];

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "coinslot-cli-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Starts a program in the folder, and collects what it prints. */
function start(program: string, args: readonly string[], env: Record<string, string> = {}) {
  const { PATH = "" } = process.env;
  const child: ChildProcess = spawn(program, args, { cwd: folder, env: { PATH, ...env } });
  const printed = { out: "", err: "" };
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    printed.out += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    printed.err += text;
  });
  running.push(child);
  return { child, printed, closed: once(child, "close") };
}

const running: ChildProcess[] = [];
afterEach(() => {
  // Those that a failed test has left.
  for (const child of running.splice(0)) if (child.exitCode === null) child.kill();
});

/** Waits until it has printed something. */
async function until(look: () => string, pattern: RegExp): Promise<RegExpExecArray> {
  await expect.poll(look, { timeout: 20_000, interval: 20 }).toMatch(pattern);
  const found = pattern.exec(look());
  if (found === null) throw new Error(`It did not print ${pattern}`);
  return found;
}

describe("coinslot, as a process", () => {
  it("starts a chain, prints its environment, and ends it at Ctrl-C", async () => {
    const { child, printed, closed } = start(node, [...coinslot, "devnet", "--json"]);
    await until(() => printed.err, /Ctrl-C stops it/);
    const { rpcUrl, environment } = JSON.parse(printed.out);
    expect(environment).toMatchObject({
      COINSLOT_NETWORK: "eip155:9745",
      COINSLOT_RPC_URL: rpcUrl,
      WALLET_PRIVATE_KEY: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    });
    child.kill("SIGINT");
    expect(await closed).toEqual([exitCode.done, null]);
    await expect(fetch(rpcUrl)).rejects.toThrow();
  });

  it("ends quietly when nobody reads on", async () => {
    const words = [node, ...coinslot, "bridge", "chains", "--json"].map((word) => `'${word}'`);
    const { printed, closed } = start("sh", ["-c", `${words.join(" ")} | head -n 1`]);
    expect(await closed).toEqual([0, null]);
    expect(printed).toEqual({ out: "[\n", err: "" });
  });
});

let devnet: Devnet;
let seller: TestSeller;
beforeAll(async () => {
  devnet = await startDevnet({ accountCount: 4 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 10_000n });
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

describe("coinslot pay, on a terminal", () => {
  /** Runs it behind a pseudo-terminal. */
  function onTerminal(env: Record<string, string> = {}) {
    const words = [node, ...coinslot, "pay", `${seller.url}/weather`].map((word) => `'${word}'`);
    const args = ["--quiet", "--return", "--command", words.join(" "), "/dev/null"];
    return start("script", args, { TERM: "xterm", SHELL: "/bin/sh", ...env });
  }

  it("takes keys from the folder's .env file, asks in colours, and pays after a yes", async () => {
    const { child, printed, closed } = onTerminal();
    await until(() => printed.out, /Pay\? \[y\/N\] /);
    expect(printed.out).toContain("\u001b[2mcosts");
    child.stdin?.write("y\r");
    expect(await closed).toEqual([exitCode.done, null]);
    expect(printed.out).toContain('{"forecast":"sun"}');
    expect(printed.out).not.toContain(devnet.accounts.buyer.privateKey);
  });

  it("pays nothing after Ctrl-C, and paints nothing under NO_COLOR", async () => {
    const { child, printed, closed } = onTerminal({ NO_COLOR: "1" });
    await until(() => printed.out, /Pay\? \[y\/N\] /);
    expect(printed.out).toContain("\ncosts ");
    child.stdin?.write("\u0003");
    expect(await closed).toEqual([exitCode.interrupted, null]);
    expect(printed.out).not.toContain("forecast");
  });
});
