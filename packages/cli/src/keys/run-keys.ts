import { KeysUsageError, readIndexerDatabaseUrl, runKeysCommand } from "@coinslot/hosting";
import { UsageError } from "../exit-code.ts";
import type { Terminal } from "../terminal.ts";

/** Runs a command on the keys in the service's database. @throws UsageError */
export async function runKeys(options: {
  args: readonly string[];
  file: string | undefined;
  terminal: Terminal;
}): Promise<void> {
  const { args, file, terminal } = options;
  const databaseUrl = readIndexerDatabaseUrl({ env: terminal.env, file });
  const output = { out: terminal.out, note: terminal.err };
  try {
    await runKeysCommand(args, { databaseUrl, output });
  } catch (error) {
    if (!(error instanceof KeysUsageError)) throw error;
    throw new UsageError(error.message, { cause: error });
  }
}
