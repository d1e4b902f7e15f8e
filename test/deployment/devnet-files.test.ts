import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "@coinslot/cli";
import { expect, it, onTestFinished } from "vitest";
import * as z from "zod";

const printed = z.object({ environment: z.record(z.string(), z.string()) });

it("a devnet writes its environment as files, as containers take secrets", async () => {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-devnet-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const interrupted = new AbortController();
  const read: Record<string, string> = {};
  const modes = new Set<number>();

  const code = await runCli(["devnet", "--host", "127.0.0.1", "--files", folder, "--json"], {
    out: (text) => Object.assign(read, printed.parse(JSON.parse(text)).environment),
    // It is running once it prints how to stop it.
    err: () => interrupted.abort(),
    confirm: undefined,
    isColourful: false,
    env: {},
    signal: interrupted.signal,
  });

  expect(code).toBe(0);
  expect(Object.keys(read)).toContain("FACILITATOR_PRIVATE_KEY");
  expect((await readdir(folder)).toSorted()).toEqual(Object.keys(read).toSorted());
  for (const [name, value] of Object.entries(read)) {
    expect(await readFile(join(folder, name), "utf8")).toBe(`${value}\n`);
    modes.add((await stat(join(folder, name))).mode & 0o777);
  }
  expect([...modes]).toEqual([0o600]);
});
