/**
 * The indexing service: reads environment and file, follows chains, serves the API. `--help` says
 * more.
 */
import {
  createLogger,
  KeysUsageError,
  readIndexerDatabaseUrl,
  runIndexerService,
  runKeysCommand,
  ServiceStartError,
} from "@coinslot/hosting";
import { IndexerConfigurationError } from "@coinslot/indexer";
import { startDemoChain } from "./demo-chain.ts";
import { readArguments, usage } from "./read-arguments.ts";

const { env } = process;
const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => interrupted.abort());
const { signal } = interrupted;

async function main(): Promise<void> {
  const { isHelp, isDevnet, file, keysArgs } = readArguments(process.argv.slice(2));
  if (isHelp) return console.log(usage);
  if (keysArgs !== undefined) {
    const output = { out: console.log, note: console.error };
    return runKeysCommand(keysArgs, { databaseUrl: readIndexerDatabaseUrl({ env, file }), output });
  }
  if (!isDevnet) return runIndexerService({ env, file, signal, terminal: process.stderr });
  const { overrides, introduce, stop } = await startDemoChain();
  try {
    await runIndexerService({
      env,
      file,
      overrides,
      signal,
      logger: createLogger("warn"),
      onServing: async (service) => console.log(await introduce(service)),
    });
  } finally {
    await stop();
  }
}

main().catch((error: unknown) => {
  const isExpected =
    error instanceof IndexerConfigurationError || error instanceof ServiceStartError;
  if (error instanceof KeysUsageError) console.error(`${error.message}\n\n${usage}`);
  else console.error(isExpected ? error.message : error);
  // Remaining handles must not keep the process alive.
  process.exit(1);
});
