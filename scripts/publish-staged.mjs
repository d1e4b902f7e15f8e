import { execFileSync } from "node:child_process";

/**
 * Publishes a staged package.
 *
 * @param {{ name: string, version: string, folder: string }} staged one of `stagePackages`
 * @param {{ isDryRun: boolean }} options
 * @returns {string} one line: the package, its version, how many files, and their sizes in kB
 * @throws with npm's output
 */
export function publishStaged({ name, folder }, { isDryRun }) {
  const args = ["publish", folder, "--access", "public", "--ignore-scripts", "--json"];
  const output = execFileSync("npm", isDryRun ? [...args, "--dry-run"] : args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
  const printed = JSON.parse(output);
  // npm 11 prints an object for each package, npm 10 prints it alone.
  const { id, files, size, unpackedSize } = printed[name] ?? printed;
  const done = isDryRun ? "can be published" : "published";
  return `${id}: ${done}, ${files.length} files, ${kB(size)} kB packed, ${kB(unpackedSize)} kB unpacked`;
}

function kB(bytes) {
  return Math.round(bytes / 1000);
}
