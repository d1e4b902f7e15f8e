import { spawn } from "node:child_process";
import { once } from "node:events";
import { createPublicClient, http } from "viem";
import { describe, expect, it } from "vitest";
import { runningCommands } from "./running-commands.ts";

/** Starts the command, and collects what it prints. */
function runMain(...args: string[]) {
  const main = spawn(process.execPath, ["--import", "tsx", "src/main.ts", ...args], {
    cwd: new URL("..", import.meta.url),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const printed = { out: "", error: "" };
  main.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed.out += text;
  });
  main.stderr.setEncoding("utf8").on("data", (text: string) => {
    printed.error += text;
  });
  return { main, printed, closed: once(main, "close") };
}

describe("the devnet command", () => {
  it("prints where everything is, stays, and stops at Ctrl-C", async () => {
    const chainId = 1_000_000 + Math.floor(Math.random() * 1e8);
    const { main, printed, closed } = runMain("--chain-id", `${chainId}`);
    await expect.poll(() => printed.out, { timeout: 20_000 }).toContain("Ctrl-C stops it.");
    const rpcUrl = /RPC URL +(\S+)/.exec(printed.out)?.[1];
    expect(await createPublicClient({ transport: http(rpcUrl) }).getChainId()).toBe(chainId);
    expect(printed.out).toContain("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    expect(printed.out).toContain(
      "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    );
    expect(printed.out).toMatch(/buyer .* 10000 gas, 1000 USDT0/);
    main.kill("SIGINT");
    expect(await closed).toEqual([0, null]);
    await expect
      .poll(() => runningCommands(`--chain-id ${chainId}`), { timeout: 10_000 })
      .toEqual([]);
  });

  it("explains itself when it is called wrongly", async () => {
    const { printed, closed } = runMain("--block-time", "soon");
    expect(await closed).toEqual([1, null]);
    expect(printed.error).toContain('--block-time takes a whole number, not "soon".');
    expect(printed.error).toContain("Usage: npm run devnet");
  });
});
