import { chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { runningCommands } from "./running-commands.ts";
import { startSource } from "./start-program.ts";

const index = new URL("./index.ts", import.meta.url).href;

/**
 * Runs a program in its own process, and resolves with that process and the first line that it
 * prints.
 */
async function runParent(program: string, env: Record<string, string> = {}) {
  const args = ["--input-type=module", "--eval", program];
  const parent = startSource(args, { folder: import.meta.dirname, env });
  onTestFinished(parent.kill);
  const [, line = ""] = await parent.waitFor(/^(.*)\n/);
  return { parent, line };
}

describe("a parent killed with SIGKILL", () => {
  it("takes its chain along", async () => {
    const chainId = 1_000_000 + Math.floor(Math.random() * 1e9);
    const { parent, line: rpcUrl } = await runParent(`
      import { startDevnet } from ${JSON.stringify(index)};
      console.log((await startDevnet({ chainId: ${chainId} })).rpcUrl);
    `);
    const ask = () =>
      fetch(rpcUrl, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}',
      });
    expect(await (await ask()).json()).toMatchObject({ result: `0x${chainId.toString(16)}` });
    await parent.kill();
    await expect
      .poll(() => runningCommands(`--chain-id ${chainId}`), { timeout: 20_000 })
      .toEqual([]);
    await expect(ask()).rejects.toThrow("fetch failed");
  });

  it("takes its PostgreSQL along, with its data", async () => {
    const directory = await mkdtemp(join(tmpdir(), "coinslot-guard-"));
    // As root, PostgreSQL runs as another user, who needs the mode of a usual temporary directory.
    await chmod(directory, 0o1777);
    const { parent, line: url } = await runParent(
      `
        import { startPostgres } from ${JSON.stringify(index)};
        console.log((await startPostgres()).url);
      `,
      { TMPDIR: directory },
    );
    expect(url).toMatch(/^postgres:/);
    expect(runningCommands(directory)).not.toEqual([]);
    expect(await readdir(directory)).not.toEqual([]);
    await parent.kill();
    await expect.poll(() => runningCommands(directory), { timeout: 20_000 }).toEqual([]);
    // tsx keeps a directory of its own for temporary files.
    const left = (await readdir(directory)).filter((name) => name.startsWith("coinslot-"));
    expect(left).toEqual([]);
    await rm(directory, { recursive: true });
  });
});
