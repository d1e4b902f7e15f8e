import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Devnet, startProgram } from "@coinslot/devnet";

const require = createRequire(import.meta.url);
const program = join(dirname(require.resolve("mppx")), "bin.js");

/** The end of a run. */
export interface MppxRun {
  code: number | null;
  stdout: string;
  stderr: string;
}

/**
 * Runs the unmodified command line of `mppx` as the devnet's buyer, in a home folder of its own. It
 * asks the public node of a chain for balances: the devnet's node answers.
 */
export async function runMppx(devnet: Devnet, args: readonly string[]): Promise<MppxRun> {
  const home = await mkdtemp(join(tmpdir(), "coinslot-mppx-"));
  const { privateKey } = devnet.accounts.buyer;
  const env = { HOME: home, NO_COLOR: "1", MPPX_PRIVATE_KEY: privateKey };
  const words = ["--import", ownNodeFor(devnet.rpcUrl), program, ...args];
  const run = startProgram(process.execPath, words, { folder: home, env });
  try {
    const code = await run.ended;
    return { code, stdout: run.stdout(), stderr: run.stderr() };
  } finally {
    await run.kill();
    await rm(home, { recursive: true });
  }
}

/** A module that sends requests to other machines to the given node. */
function ownNodeFor(rpcUrl: string): string {
  const source = `
    const send = globalThis.fetch;
    globalThis.fetch = (input, init) => {
      const { hostname } = new URL(input instanceof Request ? input.url : input);
      return hostname === "127.0.0.1" ? send(input, init) : send(${JSON.stringify(rpcUrl)}, init);
    };`;
  return `data:text/javascript,${encodeURIComponent(source)}`;
}
