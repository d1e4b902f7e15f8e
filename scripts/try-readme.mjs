// The README's seller and buyer, as a newcomer would type them into an empty folder.
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { start } from "./start-program.mjs";

const run = promisify(execFile);

/**
 * Installs the tarballs into an empty folder, types the README's two files into it, and runs them
 * beside a devnet.
 *
 * @param {{ folder: string, tarballs: string[] }} options
 * @returns {Promise<string>} what the buyer printed
 * @throws when the buyer gets anything but the weather and a receipt
 */
export async function tryReadme({ folder, tarballs }) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  for (const file of ["seller.mjs", "buyer.mjs"]) {
    writeFileSync(join(folder, file), codeBlock(file));
  }
  await run("npm", ["install", "--no-audit", "--no-fund", "express", ...tarballs], { cwd: folder });

  const timeout = AbortSignal.timeout(60_000);
  const devnet = start("node", {
    args: ["--import", "tsx", "--conditions=source", "packages/devnet/src/main.ts"],
    timeout,
  });
  try {
    const printed = await devnet.prints(/Ctrl-C/);
    const privateKeyOf = (who) =>
      new RegExp(`${who} +0x[0-9a-fA-F]{40}[^\\n]*\\n +(0x[0-9a-f]{64})`).exec(printed)?.[1];
    const environment = {
      RPC_URL: /http:\/\/\S+/.exec(printed)?.[0],
      RELAYER_KEY: privateKeyOf("relayer"),
      PAY_TO: /seller +(0x[0-9a-fA-F]{40})/.exec(printed)?.[1],
      BUYER_KEY: privateKeyOf("buyer"),
    };
    const options = { cwd: folder, env: { ...process.env, ...environment } };
    const seller = start("node", { ...options, args: ["seller.mjs"], timeout });
    try {
      await seller.prints(/costs/);
      const { stdout } = await run("node", ["buyer.mjs"], { ...options, signal: timeout });
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
