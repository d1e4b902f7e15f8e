// The coinslot command, as a user of the installed packages has it.
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { start } from "./start-program.mjs";

const run = promisify(execFile);

/**
 * Runs the command that is installed in a folder: its help, `init` in an empty folder, and a
 * devnet.
 *
 * @param {{ installed: string, empty: string }} options the folder with node_modules, and one to be
 * made
 * @returns {Promise<string>} what was found well
 * @throws when the command does anything else than it should
 */
export async function tryCommand({ installed, empty }) {
  const command = join(installed, "node_modules", ".bin", "coinslot");
  const { stdout: help } = await run("npx", ["coinslot", "--help"], { cwd: installed });
  expect(/^Usage: coinslot .*\n {2}devnet /s.test(help), help);

  mkdirSync(empty);
  const { stdout: created } = await run(command, ["init"], { cwd: empty });
  const environment = readFileSync(join(empty, ".env"), "utf8");
  expect((statSync(join(empty, ".env")).mode & 0o777) === 0o600, "others can read .env");
  for (const [, phrase] of environment.matchAll(/_SEED_PHRASE="(.+)"/g)) {
    expect(!created.includes(phrase), "init printed a seed phrase");
  }
  expect(created.includes("coinslot doctor"), created);

  const timeout = AbortSignal.timeout(60_000);
  const devnet = start(command, { args: ["devnet"], cwd: installed, timeout });
  let code;
  try {
    const printed = await devnet.prints(/Ctrl-C/);
    const lines = printed.matchAll(/^([A-Z_]+)=(.+)$/gm);
    const env = {
      ...process.env,
      ...Object.fromEntries([...lines].map(([, name, value]) => [name, value])),
    };
    const { stdout: wallet } = await run(command, ["wallet"], { cwd: installed, env });
    expect(/^buyer .* 1000 USDT0$/m.test(wallet), wallet);
  } finally {
    code = await devnet.stop();
  }
  expect(code === 0, `devnet ended with ${code}`);
  return "help, init, devnet and wallet work";
}

function expect(isTrue, complaint) {
  if (!isTrue) throw new Error(`The coinslot command: ${complaint}`);
}
