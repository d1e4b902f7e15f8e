/** The hosted facilitator: environment or a file in, HTTP out. `--help` says more. */
import { startDevnet } from "@coinslot/devnet";
import { createCallerKey, runFacilitatorService, runFacilitatorTrial } from "@coinslot/hosting";
import { readArguments, UsageError, usage } from "./read-arguments.ts";

const { env } = process;
const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => interrupted.abort());
const { signal } = interrupted;

async function main(): Promise<void> {
  const asked = readArguments(process.argv.slice(2));
  if (asked.kind === "help") return console.log(usage);
  if (asked.kind === "new-key") return printKey(asked.name);
  if (!asked.isDevnet) return runFacilitatorService({ env, file: asked.file, signal });
  const chain = await startDevnet();
  try {
    await chain.mint({ to: chain.accounts.buyer.address, amount: 1_000_000_000n });
    await runFacilitatorTrial({ chain, env, signal, print: console.log });
  } finally {
    await chain.stop();
  }
}

/** The standard output has the entry alone, so that it can be appended to a file. */
function printKey(name: string): void {
  const { key, entry } = createCallerKey(name);
  console.error(`The key of ${name}, shown this one time:\n${key}`);
  console.error("For FACILITATOR_KEYS, or a line of the file in FACILITATOR_KEYS_FILE:");
  console.log(entry);
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? `error: ${error.message}` : error);
  if (error instanceof UsageError) console.error(`\n${usage}`);
  // Open handles of a failed start do not keep the process alive.
  process.exit(error instanceof UsageError ? 2 : 1);
});
