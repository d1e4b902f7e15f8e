import { start } from "./start-program.mjs";

/**
 * Starts a local chain from the sources, and reads the lines that it prints for a shell.
 *
 * @param {{ timeout: AbortSignal }} options
 * @returns {Promise<{ environment: Record<string, string>, stop: () => Promise<number | null> }>}
 *   `environment`: the variables of a seller and of a buyer
 */
export async function startDevnet({ timeout }) {
  const devnet = start("node", {
    args: ["--import", "tsx", "--conditions=source", "packages/devnet/src/main.ts"],
    timeout,
  });
  try {
    const printed = await devnet.prints(/^export WALLET_PRIVATE_KEY=\S+$/m);
    return { environment: readExports(printed), stop: devnet.stop };
  } catch (error) {
    await devnet.stop();
    throw error;
  }
}

/** The variables that `export` lines set. */
export function readExports(printed) {
  const assignments = [...printed.matchAll(/^ *export (.*)$/gm)].flatMap(([, line]) =>
    line.split(" "),
  );
  return Object.fromEntries(assignments.map((assignment) => assignment.split(/=(.*)/s)));
}
