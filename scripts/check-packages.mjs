// Packs every public package as it would be published, and asks publint and attw about the tarball.
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const { packageManager } = JSON.parse(readFileSync("package.json", "utf8"));
const pnpm = packageManager.split("+")[0];
const packages = readdirSync("packages")
  .map((name) => join("packages", name))
  .filter(
    (folder) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).private !== true,
  );

const folder = mkdtempSync(join(tmpdir(), "coinslot-pack-"));
let failures = 0;
try {
  for (const source of packages) {
    const before = new Set(readdirSync(folder));
    await run("npm", [
      "exec",
      "--yes",
      pnpm,
      "--",
      "--dir",
      source,
      "pack",
      "--pack-destination",
      folder,
    ]);
    const tarball = readdirSync(folder).find((name) => !before.has(name));
    if (tarball === undefined) throw new Error(`${source} was not packed`);
    const path = join(folder, tarball);
    const found = (
      await Promise.all([
        ask("publint", [path, "--strict"]),
        ask("attw", [path, "--profile", "esm-only", "--no-emoji"]),
      ])
    ).filter((complaint) => complaint !== undefined);
    console.log(`${source}: ${found.length === 0 ? "well" : "FAILED"}`);
    for (const complaint of found) console.log(complaint);
    failures += found.length;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit(failures === 0 ? 0 : 1);

/** @returns the tool's output when it complains. */
async function ask(tool, args) {
  try {
    await run(join("node_modules", ".bin", tool), args);
    return undefined;
  } catch (error) {
    return `${error.stdout ?? ""}${error.stderr ?? ""}`;
  }
}
