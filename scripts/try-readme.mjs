// The README's seller and buyer, as a newcomer would type them into an empty folder.
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "./free-port.mjs";
import { startDevnet } from "./start-devnet.mjs";
import { start } from "./start-program.mjs";

const run = promisify(execFile);

/**
 * Installs packages into an empty folder, and types the README's two files into it.
 *
 * @param {{ folder: string, tarballs: string[], overrides?: Record<string, string> }} options
 *   `overrides`: versions of dependencies; without them, the newest that the ranges take
 */
export async function installReadme({ folder, tarballs, overrides = {} }) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, overrides }));
  const { viem } = overrides;
  const packages = ["express", ...(viem === undefined ? [] : [`viem@${viem}`]), ...tarballs];
  await run("npm", ["install", "--no-audit", "--no-fund", ...packages], { cwd: folder });
}

/**
 * Runs the README's seller and its buyer beside a devnet.
 *
 * @param {{ folder: string, binaries?: string }} options
 *   `folder`: one of `installReadme`. `binaries`: folder of another version of Node
 * @returns {Promise<string>} what the buyer printed
 * @throws when the buyer gets anything but the weather and a receipt
 */
export async function tryReadme({ folder, binaries }) {
  const port = await freePort();
  for (const file of ["seller.mjs", "buyer.mjs"]) {
    writeFileSync(join(folder, file), codeBlock(file).replaceAll("4021", String(port)));
  }
  // A ledger belongs to its chain: the one before is of a devnet that is gone.
  for (const name of readdirSync(folder).filter((name) => name.startsWith("coinslot.db"))) {
    rmSync(join(folder, name));
  }
  const timeout = AbortSignal.timeout(120_000);
  const devnet = await startDevnet({ timeout });
  try {
    const env = {
      ...process.env,
      PATH: [binaries, process.env.PATH].filter((part) => part !== undefined).join(delimiter),
      ...devnet.environment,
    };
    const seller = start("node", { cwd: folder, env, args: ["seller.mjs"], timeout });
    try {
      await seller.prints(/costs/);
      const { stdout } = await run("node", ["buyer.mjs"], { cwd: folder, env, signal: timeout });
      if (!stdout.includes("sun") || !stdout.includes("success: true")) {
        throw new Error(`The README's buyer printed:\n${stdout}`);
      }
      return stdout.trim();
    } finally {
      await seller.stop();
    }
  } finally {
    await devnet.stop();
  }
}

function codeBlock(file) {
  const readme = readFileSync("README.md", "utf8");
  const block = readme.split("```").find((part) => part.startsWith(`js\n// ${file}\n`));
  if (block === undefined) throw new Error(`The README has no code block for ${file}.`);
  return block.slice("js\n".length);
}
