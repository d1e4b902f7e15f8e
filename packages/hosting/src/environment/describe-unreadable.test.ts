import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { describeUnreadable } from "./describe-unreadable.ts";
import { readSecret } from "./read-secret.ts";

const folder = mkdtempSync(join(tmpdir(), "coinslot-secret-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("a secret of another owner is refused with its owner, its mode and the user of the process", () => {
  const path = join(folder, "seed");
  writeFileSync(path, "a secret", { mode: 0o600 });
  const { uid } = statSync(path);
  const denied = Object.assign(new Error("denied"), { code: "EACCES" });
  expect(describeUnreadable(path, denied, 1000)).toBe(
    `${path} cannot be read: user 1000 may not read it (it belongs to user ${uid}, mode 0600). Make user 1000 its owner: chown 1000 <file>`,
  );
});

test("a secret in an inaccessible folder is refused without unknown details", () => {
  const denied = Object.assign(new Error("denied"), { code: "EACCES" });
  expect(describeUnreadable("/nowhere/seed", denied, 1000)).toContain(
    "user 1000 may not read it. Make",
  );
});

test("a missing secret file, or a folder in its place, is reported as such", () => {
  const problems: string[] = [];
  const tell = (problem: string) => void problems.push(problem);
  readSecret({ SEED_FILE: join(folder, "missing") }, "SEED", tell);
  readSecret({ SEED_FILE: folder }, "SEED", tell);
  expect(problems).toEqual([
    `SEED_FILE: ${join(folder, "missing")} cannot be read: the file does not exist`,
    `SEED_FILE: ${folder} cannot be read: it is a folder`,
  ]);
});
