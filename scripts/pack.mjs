// Builds and packs every public package, as it would be published, into a folder.
//   node scripts/pack.mjs [folder]      the default folder is packed/
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { publicationOrPlaceholder } from "./publication.mjs";
import { stagePackages } from "./stage-packages.mjs";

/**
 * Packs packages that are staged.
 *
 * @param {readonly { folder: string }[]} staged as `stagePackages` returns them
 * @param {string} folder for the tarballs; its previous content is removed
 * @returns {string[]} the tarballs' paths
 */
export function packStaged(staged, folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  execFileSync(
    "npm",
    [
      "pack",
      "--ignore-scripts",
      "--pack-destination",
      resolve(folder),
      ...staged.map(({ folder }) => folder),
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  return readdirSync(folder).map((name) => join(folder, name));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = mkdtempSync(join(tmpdir(), "coinslot-staged-"));
  try {
    const staged = stagePackages(folder, { publication: publicationOrPlaceholder() });
    console.log(packStaged(staged, process.argv[2] ?? "packed").join("\n"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
