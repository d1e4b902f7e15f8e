// Builds and packs every public package, as it would be published, into a folder.
//   node scripts/pack.mjs [folder]      the folder is packed/ unless said
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Packs every public package.
 *
 * @param {string} folder where the tarballs go; what is in it is removed first
 * @param {{ isBuilt?: boolean }} options whether they are built already
 * @returns {string[]} the tarballs' paths
 */
export function packPackages(folder, { isBuilt = false } = {}) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const { packageManager } = JSON.parse(readFileSync("package.json", "utf8"));
  const pnpm = ["exec", "--yes", packageManager.split("+")[0], "--"];
  if (!isBuilt) {
    execFileSync(join("node_modules", ".bin", "tsdown"), {
      stdio: ["ignore", "ignore", "inherit"],
    });
  }
  const filters = readdirSync("packages")
    .map((name) => JSON.parse(readFileSync(join("packages", name, "package.json"), "utf8")))
    .filter((manifest) => manifest.private !== true)
    .map((manifest) => `--filter=${manifest.name}`);
  execFileSync(
    "npm",
    [...pnpm, "--recursive", ...filters, "pack", "--pack-destination", resolve(folder)],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  return readdirSync(folder).map((name) => join(folder, name));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const tarballs = packPackages(process.argv[2] ?? "packed");
  console.log(tarballs.join("\n"));
}
