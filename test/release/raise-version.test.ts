import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { root } from "../docs/code-block.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "raise-version-"));
  write("package.json", '{ "name": "workspace", "private": true }');
  write("pnpm-workspace.yaml", "packages:\n  - packages/*\n");
  write("pnpm-lock.yaml", "");
  write("CHANGELOG.md", "# Changelog\n\nHead.\n\n## 0.1.9 (2026-01-01)\n\nOld.\n");
  manifest("express", { peerDependencies: { "@coinslot/facilitator": "workspace:^" } });
  manifest("facilitator", {});
  manifest("devnet", { private: true });
  cpSync(join(root, ".changeset/config.json"), join(folder, ".changeset/config.json"));
  git("init", "--quiet", "--initial-branch=main");
  git("add", ".");
  const author = ["-c", "user.name=a", "-c", "user.email=a@localhost"];
  git(...author, "commit", "--quiet", "--message=start");
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, text: string): void {
  mkdirSync(join(folder, path, ".."), { recursive: true });
  writeFileSync(join(folder, path), text);
}

function manifest(name: string, more: object): void {
  const text = JSON.stringify({ name: `@coinslot/${name}`, version: "0.1.9", ...more }, null, 2);
  write(`packages/${name}/package.json`, text);
}

const read = (path: string) => readFileSync(join(folder, path), "utf8");
const git = (...args: string[]) => execFileSync("git", args, { cwd: folder });

function raiseVersion(): string {
  const script = join(root, "scripts/raise-version.mjs");
  return execFileSync(process.execPath, [script], { cwd: folder, encoding: "utf8", stdio: "pipe" });
}

describe("raising the version", () => {
  it("gives all public packages the version of the largest change", () => {
    write(".changeset/one.md", '---\n"@coinslot/express": minor\n---\n\nRoutes stream.\n');
    write(".changeset/two.md", '---\n"@coinslot/facilitator": patch\n---\n\nIt settles.\n');
    expect(raiseVersion()).toBe("0.1.9 -> 0.2.0\n");
    expect(read("packages/express/package.json")).toContain('"version": "0.2.0"');
    expect(read("packages/facilitator/package.json")).toContain('"version": "0.2.0"');
    expect(read("packages/devnet/package.json")).toContain('"version": "0.1.9"');
    expect(existsSync(join(folder, ".changeset/one.md"))).toBe(false);
    expect(existsSync(join(folder, ".changeset/two.md"))).toBe(false);
  });

  it("writes a changelog section above the earlier ones, larger changes first", () => {
    write(".changeset/a.md", '---\n"@coinslot/facilitator": patch\n---\n\nIt settles.\n');
    write(".changeset/b.md", '---\n"@coinslot/express": minor\n---\n\nRoutes stream.\n');
    raiseVersion();
    expect(read("CHANGELOG.md").replace(/\d{4}-\d\d-\d\d(?=\)\n\n### New)/, "today")).toBe(
      `# Changelog

Head.

## 0.2.0 (today)

### New

- **express**: Routes stream.

### Fixed

- **facilitator**: It settles.

## 0.1.9 (2026-01-01)

Old.
`,
    );
  });

  it("changes nothing without a changeset, and explains how to write one", () => {
    expect(raiseVersion).toThrow("npx changeset");
    expect(read("packages/express/package.json")).toContain('"version": "0.1.9"');
    expect(read("CHANGELOG.md")).not.toContain("0.1.10");
  });
});
