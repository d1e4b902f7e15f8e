import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exitCode } from "../exit-code.ts";
import { runCoinslot } from "../testing/run-coinslot.ts";

const run = promisify(execFile);

describe("coinslot completion bash", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "coinslot-cli-"));
    const { out } = await runCoinslot(["completion", "bash"]);
    await writeFile(join(folder, "completion.bash"), out);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  /** The completions of a real bash after these words. */
  async function complete(...words: string[]): Promise<string[]> {
    const script = `
      source ./completion.bash
      source ./completion.bash # A shell may read its settings twice.
      COMP_WORDS=(coinslot "$@")
      COMP_CWORD=$#
      _coinslot
      printf '%s\\n' "\${COMPREPLY[@]}"`;
    const args = ["--noprofile", "--norc", "-u", "-c", script, "bash", ...words];
    const { stdout, stderr } = await run("bash", args, { cwd: folder });
    expect(stderr).toBe("");
    return stdout.split("\n").filter((line) => line !== "");
  }

  it("completes commands, at every level", async () => {
    expect(await complete("")).toEqual(
      expect.arrayContaining(["init", "doctor", "pay", "payments", "devnet", "completion"]),
    );
    expect(await complete("pay")).toEqual(["pay", "payments"]);
    expect(await complete("payments", "")).toEqual([
      "list",
      "show",
      "timeline",
      "stats",
      "export",
      "receipt",
      "help",
    ]);
    expect(await complete("payments", "ex")).toEqual(["export"]);
    expect(await complete("keys", "c")).toEqual(["create"]);
  });

  it("completes options, choices and arguments", async () => {
    expect(await complete("pay", "--max")).toEqual(["--max-price", "--max-deposit"]);
    expect(await complete("payments", "list", "--state", "co")).toEqual(["confirmed"]);
    expect(await complete("completion", "")).toEqual(["bash", "zsh", "fish"]);
    expect(await complete("--network", "x", "payments", "list", "--j")).toEqual(["--json"]);
  });

  it("leaves files to the shell, and executes nothing of the line", async () => {
    expect(await complete("pay", "--data", "")).toEqual([]);
    expect(await complete("pay", '"$(touch ran)"', "--y")).toEqual(["--yes"]);
    await expect(run("ls", [join(folder, "ran")])).rejects.toThrow();
  });
});

describe("coinslot completion", () => {
  it.each(["zsh", "fish"])("prints a script for %s that names every command", async (shell) => {
    const { code, out } = await runCoinslot(["completion", shell]);
    expect(code).toBe(exitCode.done);
    for (const words of ["bridge send", "payments export", "keys create", "devnet"]) {
      expect(out).toContain(`' ${words}'`);
    }
    expect(out).toContain("reserved");
  });

  it("supports no other shell", async () => {
    const { code, err } = await runCoinslot(["completion", "tcsh"]);
    expect(code).toBe(exitCode.usage);
    expect(err).toContain("bash, zsh, fish");
  });
});
