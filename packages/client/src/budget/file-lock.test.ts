import { spawnSync } from "node:child_process";
import { readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { superJournalOf } from "@coinslot/devnet";
import { useProgram } from "@coinslot/devnet/use-program";
import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { runScript } from "../testing/run-script.ts";
import { useTemporaryFolder } from "../testing/temporary-folder.ts";
import { withFileLock } from "./file-lock.ts";

const inFolder = useTemporaryFolder();
const holdLock = useProgram(new URL("../testing/hold-lock.ts", import.meta.url));

/** Starts a process that has the lock; it ends with the test. */
async function startHolder(path: string, prefix: readonly string[] = []) {
  const [command, ...args] = [...prefix, process.execPath, holdLock(), path];
  const holder = runScript([command ?? "", ...args]);
  onTestFinished(async () => {
    holder.child.kill("SIGKILL");
    await holder.ended;
  });
  await holder.begun;
  expect(holder.lines()).toEqual(["held"]);
  return holder;
}

/** Command that starts a process as the first one of a container, where the system allows that. */
const asContainer = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"];
const canContain = spawnSync("unshare", [...asContainer.slice(1), "true"]).status === 0;

describe("withFileLock", () => {
  it("admits one caller at a time, in order of arrival", async () => {
    const path = inFolder("file");
    const log: string[] = [];
    await Promise.all(
      [1, 2, 3].map((name) =>
        withFileLock(path, async () => {
          log.push(`${name} begins`);
          await stat(`${path}.lock`);
          log.push(`${name} ends`);
        }),
      ),
    );
    expect(log).toEqual([1, 2, 3].flatMap((name) => [`${name} begins`, `${name} ends`]));
  });

  it("leaves one empty file that only its owner can read", async () => {
    const path = inFolder("file");
    await withFileLock(path, async () => "done");
    expect(await readdir(dirname(path))).toEqual(["file.lock"]);
    const { size, mode } = await stat(`${path}.lock`);
    expect({ size, mode: mode & 0o777 }).toEqual({ size: 0, mode: 0o600 });
  });

  it("passes on a failure of the work, and is released afterwards", async () => {
    const path = inFolder("file");
    const failing = withFileLock(path, () => Promise.reject(new Error("No")));
    const following = withFileLock(path, async () => "done");
    await expect(failing).rejects.toThrow("No");
    expect(await following).toBe("done");
  });

  it("is released once its holder was killed, and never before", async () => {
    const path = inFolder("file");
    const holder = await startHolder(path);
    const tryFor = (lockTimeoutMs: number) =>
      withFileLock(path, async () => "done", { lockTimeoutMs });
    await expect(tryFor(50)).rejects.toMatchObject({
      code: "budget_file_unavailable",
      message: expect.stringContaining("another process that is still running"),
    });
    const waiting = tryFor(10_000);
    holder.child.kill("SIGKILL");
    expect(await waiting).toBe("done");
    expect(await readdir(dirname(path))).toEqual(["file.lock"]);
  });

  it("is tried less and less often by a process that waits for it", async () => {
    const path = inFolder("file");
    await startHolder(path);
    let tries = 0;
    class Counting extends DatabaseSync {
      constructor(file: string) {
        super(file);
        tries += 1;
      }
    }
    const { getBuiltinModule } = process;
    const builtIn = vi
      .spyOn(process, "getBuiltinModule")
      .mockImplementation((name: string) =>
        name === "node:sqlite" ? { DatabaseSync: Counting } : getBuiltinModule(name),
      );
    onTestFinished(() => builtIn.mockRestore());
    await expect(
      withFileLock(path, async () => "done", { lockTimeoutMs: 1_500 }),
    ).rejects.toMatchObject({ code: "budget_file_unavailable" });
    // The pauses alone allow 20, and 34 at most in 200,000 draws.
    expect(tries).toBeLessThan(60);
  });

  it("leads through no link to another file", async () => {
    const path = inFolder("file");
    const other = inFolder("other");
    await writeFile(other, "kept");
    await symlink(other, `${path}.lock`);
    await expect(withFileLock(path, async () => "done")).rejects.toMatchObject({
      code: "budget_file_unavailable",
      message: expect.stringContaining("is not a regular file"),
    });
    expect(await readFile(other, "utf8")).toBe("kept");
  });

  it("stays locked for a container whose process has the same id and name", async () => {
    const path = inFolder("file");
    await startHolder(path, canContain ? asContainer : []);
    const [command, ...args] = [
      ...(canContain ? asContainer : []),
      process.execPath,
      holdLock(),
      path,
    ];
    const second = runScript([command ?? "", ...args]);
    onTestFinished(async () => {
      second.child.kill("SIGKILL");
      await second.ended;
    });
    await expect(
      withFileLock(path, async () => "done", { lockTimeoutMs: 2_000 }),
    ).rejects.toMatchObject({ code: "budget_file_unavailable" });
    expect(second.lines()).toEqual([]);
  });

  it("survives the removal of its lock file while it is held", async () => {
    const path = inFolder("file");
    const log: string[] = [];
    await withFileLock(path, async () => {
      await rm(`${path}.lock`);
      await writeFile(`${path}.lock`, "");
      log.push("first");
    });
    await withFileLock(path, async () => log.push("second"));
    expect(log).toEqual(["first", "second"]);
  });

  it("is not opened where it is not empty, since its journal may name a file that SQLite deletes", async () => {
    const path = inFolder("file");
    const other = inFolder("other");
    await writeFile(other, "kept");
    await writeFile(`${path}.lock`, "xx");
    await writeFile(`${path}.lock-journal`, superJournalOf(other));
    await expect(
      withFileLock(path, async () => "done", { lockTimeoutMs: 50 }),
    ).rejects.toMatchObject({ code: "budget_file_unavailable" });
    expect(await readFile(other, "utf8")).toBe("kept");
  });

  it("is not opened beside a journal, which no lock has", async () => {
    const path = inFolder("file");
    await writeFile(`${path}.lock`, "S");
    await writeFile(`${path}.lock-journal`, "x");
    await expect(withFileLock(path, async () => "done")).rejects.toMatchObject({
      code: "budget_file_unavailable",
      message: expect.stringContaining("file.lock-journal"),
    });
    await rm(`${path}.lock-journal`);
    expect(await withFileLock(path, async () => "done")).toBe("done");
  });

  it("accepts an empty lock file that an earlier version left", async () => {
    const path = inFolder("file");
    await writeFile(`${path}.lock`, "");
    expect(await withFileLock(path, async () => "done")).toBe("done");
  });

  it("waits for a process of an earlier version, then names the lock's holder", async () => {
    const path = inFolder("file");
    const holder = { id: crypto.randomUUID(), pid: 123, host: "machine" };
    await writeFile(`${path}.lock`, JSON.stringify(holder));
    await expect(
      withFileLock(path, async () => "done", { lockTimeoutMs: 50 }),
    ).rejects.toMatchObject({
      code: "budget_file_unavailable",
      message: expect.stringContaining("process 123 on machine, of an earlier version"),
    });
    const waiting = withFileLock(path, async () => "done");
    await rm(`${path}.lock`);
    expect(await waiting).toBe("done");
  });
});
