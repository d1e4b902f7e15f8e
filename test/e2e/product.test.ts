import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));

interface Running {
  child: ChildProcessByStdio<null, Readable, Readable>;
  /** Everything that was printed. */
  printed(): string;
  /** Resolves with the exit code. */
  ended: Promise<number | null>;
}

/** Runs a program in the root of the repository; it ends with the test. */
function run(program: string, args: readonly string[], env: Record<string, string> = {}): Running {
  const child = spawn(program, args, {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (text) => {
      printed += text;
    });
  }
  const ended = once(child, "close").then(() => child.exitCode);
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return { child, printed: () => printed, ended };
}

function runScript(name: string, env?: Record<string, string>): Running {
  return run(
    process.execPath,
    ["--import", "tsx", "--conditions=source", `scripts/${name}.ts`],
    env,
  );
}

// Each starts programs, which takes its time beside everything else that runs.
describe("the product", { timeout: 120_000 }, () => {
  it("shows itself: three purchases, checked against the chain, and ends", async () => {
    const demo = runScript("demo");
    expect({ code: await demo.ended, said: demo.printed() }).toEqual({
      code: 0,
      said: expect.stringContaining("Sold."),
    });
    expect(demo.printed().match(/402 Payment Required/g)).toHaveLength(3);
    expect(demo.printed().match(/ms +0x[0-9a-f]{64}\n/g)).toHaveLength(3);
    expect(demo.printed()).toMatch(/seller +0 +0\.005 USDT0 +\+0\.005/);
  });

  it("names the port that it cannot have, and ends with 1", async () => {
    for (const port of ["abc", "70000"]) {
      const market = runScript("start", { PAID_INDEXER_PORT: port });
      expect(await market.ended).toBe(1);
      expect(market.printed()).toContain("PAID_INDEXER_PORT: must be a whole number from 0 to");
    }
    const balance = ["--import", "tsx", "scripts/balance.ts", "99999", "4031"];
    const balancer = run(process.execPath, balance);
    expect(await balancer.ended).toBe(1);
    expect(balancer.printed()).toMatch(/^Usage: /);
  });

  it("stays to be tried: the lines that it prints work as they are printed", async () => {
    const market = runScript("start", { PAID_INDEXER_PORT: "0" });
    await expect
      .poll(() => market.printed().includes("Ctrl-C stops it.") || market.child.exitCode, {
        timeout: 60_000,
      })
      .toBe(true);
    const lines = market.printed().match(/^(?:curl|export|npm) .*$/gm) ?? [];
    expect(lines).toHaveLength(7);
    const typed = run("sh", ["-euc", lines.join("\n")]);
    expect({ code: await typed.ended, said: typed.printed() }).toMatchObject({ code: 0 });
    expect(typed.printed().match(/HTTP\/1.1 402/g)).toHaveLength(2);
    expect(typed.printed()).toContain('{"transfers":[{');
    expect(typed.printed()).toContain('[{"tokenBalance":{');

    market.child.kill("SIGINT");
    expect(await market.ended).toBe(0);
    expect(market.printed()).toMatch(/Stopped\.\n$/);
  });
});
