import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { describe, expect, it } from "vitest";
import { describeHolder, withFileLock } from "./file-lock.ts";
import { useTemporaryFolder } from "./testing/temporary-folder.ts";

const inFolder = useTemporaryFolder();

/** Leaves a lock as its holder would have. */
async function leaveLock(
  path: string,
  { pid, ...of }: { pid: number; host?: string; pidNamespace?: string },
): Promise<void> {
  await writeFile(`${path}.lock`, JSON.stringify({ ...describeHolder(pid), ...of }));
}

/** As if it had been left a minute before this process began. */
async function makeOld(path: string): Promise<void> {
  const before = Date.now() / 1000 - process.uptime() - 60;
  await utimes(`${path}.lock`, before, before);
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
    await makeOld(path);
    expect(await withFileLock(path, async () => "done")).toBe("done");
  });

  it("breaks a lock of the life that its container had before", async () => {
    const path = inFolder("file");
    await leaveLock(path, { pid: process.ppid, pidNamespace: "pid:[1]" });
    await makeOld(path);
    expect(await withFileLock(path, async () => "done")).toBe("done");
  });

  it.each([
    ["a process that runs", () => ({ pid: process.ppid })],
    ["another thread of this process", () => ({ pid: process.pid })],
    ["a container of the same name", () => ({ pid: 2 ** 30, pidNamespace: "pid:[1]" })],
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
