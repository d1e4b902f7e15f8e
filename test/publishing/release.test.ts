import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";

const program = fileURLToPath(new URL("../../scripts/release.mjs", import.meta.url));

/** Starts a release where the root package.json has these members. */
function release(manifest: Record<string, unknown>) {
  const folder = mkdtempSync(join(tmpdir(), "coinslot-release-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  return spawnSync("node", [program, "--dry-run"], { cwd: folder, encoding: "utf8" });
}

describe("a release", () => {
  it("is refused without repository, homepage and bugs, all named at once", () => {
    const { status, stdout, stderr } = release({ name: "coinslot" });
    expect(status).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toBe(
      "A release needs repository, homepage, bugs in the root package.json, each an https URL as text.\n",
    );
  });

  it("is refused with a repository that is not at an https URL", () => {
    const { status, stderr } = release({
      repository: "git@forge.example:coinslot.git",
      homepage: "https://coinslot.example",
      bugs: "https://forge.example/coinslot/issues",
    });
    expect(status).toBe(1);
    expect(stderr).toMatch(/^A release needs repository in the root package.json/);
  });
});
