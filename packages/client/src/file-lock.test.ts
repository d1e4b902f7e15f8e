import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { describe, expect, it } from "vitest";
import { withFileLock } from "./file-lock.ts";
import { useTemporaryFolder } from "./testing/temporary-folder.ts";

const inFolder = useTemporaryFolder();

/** Leaves a lock as its holder would have. */
async function leaveLock(path: string, holder: { pid: number; host?: string }): Promise<void> {
  const content = { id: randomUUID(), host: hostname(), ...holder };
  await writeFile(`${path}.lock`, JSON.stringify(content));
}

/** The id of a process that has ended. */
async function deadPid(): Promise<number> {
  const child = spawn(process.execPath, ["-e", ""]);
  await once(child, "exit");
  return child.pid ?? 0;
}

describe("withFileLock", () => {
  it("lets one caller work at a time, in the order in which they came", async () => {
    const path = inFolder("file");
    const log: string[] = [];
    await Promise.all(
      [1, 2, 3].map((name) =>
        withFileLock(path, async () => {
          log.push(`${name} begins`);
          await readFile(`${path}.lock`, "utf8");
          log.push(`${name} ends`);
        }),
      ),
    );
    expect(log).toEqual([1, 2, 3].flatMap((name) => [`${name} begins`, `${name} ends`]));
    expect(await readdir(dirname(path))).toEqual([]);
  });

  it("passes on a failure of the work, and is free afterwards", async () => {
    const path = inFolder("file");
    const failing = withFileLock(path, () => Promise.reject(new Error("No")));
    const following = withFileLock(path, async () => "done");
    await expect(failing).rejects.toThrow("No");
    expect(await following).toBe("done");
  });

  it("breaks the lock of a process that has died", async () => {
    const path = inFolder("file");
    await leaveLock(path, { pid: await deadPid() });
    expect(await withFileLock(path, async () => "done")).toBe("done");
    expect(await readdir(dirname(path))).toEqual([]);
  });

  it("breaks a lock of its own process id that is older than this process", async () => {
    const path = inFolder("file");
    await leaveLock(path, { pid: process.pid });
    const before = Date.now() / 1000 - process.uptime() - 60;
    await utimes(`${path}.lock`, before, before);
    expect(await withFileLock(path, async () => "done")).toBe("done");
  });

  it.each([
    ["a process that runs", () => ({ pid: process.ppid })],
    ["another thread of this process", () => ({ pid: process.pid })],
    ["another machine", () => ({ pid: 2 ** 30, host: "another-machine" })],
  ])("waits for %s, then says who has it", async (_name, holder) => {
    const path = inFolder("file");
    await leaveLock(path, holder());
    const { pid } = holder();
    await expect(
      withFileLock(path, async () => "done", { lockTimeoutMs: 50 }),
    ).rejects.toMatchObject({
      code: "budget_file_unavailable",
      message: expect.stringContaining(`by process ${pid}`),
    });
    expect(await readdir(dirname(path))).toEqual(["file.lock"]);
  });
});
