import { fileURLToPath } from "node:url";
import { createPublicClient, http } from "viem";
import { describe, expect, it, onTestFinished } from "vitest";
import { runningCommands } from "./running-commands.ts";
import { startSource } from "./start-program.ts";

const folder = fileURLToPath(new URL("..", import.meta.url));

function runMain(...args: string[]) {
  const main = startSource(["src/main.ts", ...args], { folder });
  onTestFinished(main.kill);
  return main;
}

describe("the devnet command", () => {
  it("prints its addresses, stays, and stops at Ctrl-C", async () => {
    const chainId = 1_000_000 + Math.floor(Math.random() * 1e8);
    const main = runMain("--chain-id", `${chainId}`);
    await main.waitFor(/^export WALLET_PRIVATE_KEY=0x[0-9a-f]{64}$/m);
    const rpcUrl = /RPC URL +(\S+)/.exec(main.stdout())?.[1];
    expect(await createPublicClient({ transport: http(rpcUrl) }).getChainId()).toBe(chainId);
    expect(main.stdout()).toContain("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    expect(main.stdout()).toContain(
      "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    );
    expect(main.stdout()).toMatch(/buyer .* 10000 gas, 1000 USDT0/);
    // The last lines can be typed into another terminal as they are.
    const lines = main.stdout().trimEnd().split("\n").slice(-4);
    expect(lines[0]).toBe(`export COINSLOT_NETWORK=eip155:${chainId} COINSLOT_RPC_URL=${rpcUrl}`);
    const names = lines.map((line) => /^export (\w+)=\S+/.exec(line)?.[1]);
    expect(names).toEqual([
      "COINSLOT_NETWORK",
      "FACILITATOR_PRIVATE_KEY",
      "PAY_TO",
      "WALLET_PRIVATE_KEY",
    ]);
    main.child.kill("SIGINT");
    expect(await main.ended).toBe(0);
    await expect
      .poll(() => runningCommands(`--chain-id ${chainId}`), { timeout: 20_000 })
      .toEqual([]);
  });

  it("prints its usage for wrong arguments", async () => {
    const main = runMain("--block-time", "soon");
    expect(await main.ended).toBe(1);
    expect(main.stderr()).toContain('--block-time takes a whole number, not "soon".');
    expect(main.stderr()).toContain("Usage: npm run devnet");
  });
});
