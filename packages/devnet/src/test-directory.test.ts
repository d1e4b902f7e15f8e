import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import setup from "./test-directory.ts";

/** Begins a run, prints the directory of its temporary files, and ends when it is killed. */
const program = `
const { default: setup } = await import(${JSON.stringify(fileURLToPath(new URL("test-directory.ts", import.meta.url)))});
delete process.env.TMPDIR;
await setup();
console.log(process.env.TMPDIR ?? "on disk");
setInterval(() => {}, 1_000);
`;

it("a killed run leaves no temporary files in memory", async () => {
  const args = ["--import", "tsx", "--conditions=source", "--input-type=module", "-e", program];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const [first] = await once(child.stdout, "data");
  const directory = String(first).trim();
  // A machine with little memory keeps them on the disk, where its owner removes them.
  if (directory === "on disk") return void child.kill("SIGKILL");
  expect(statSync(directory).isDirectory()).toBe(true);
  child.kill("SIGKILL");
  await expect.poll(() => existsSync(directory), { timeout: 60_000 }).toBe(false);
});

it("a run within another one keeps its temporary files", async () => {
  const before = tmpdir();
  const teardown = await setup();
  if (before.startsWith("/dev/shm/")) expect(tmpdir()).toBe(before);
  await teardown();
  expect(tmpdir()).toBe(before);
  expect(existsSync(before)).toBe(true);
});
