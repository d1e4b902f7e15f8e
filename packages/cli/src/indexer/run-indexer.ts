import { runIndexerService } from "@coinslot/hosting";
import type { ProgressTerminal } from "@coinslot/indexer";
import type { Terminal } from "../terminal.ts";

/**
 * Runs the indexing service until an interrupt, then shuts it down in order. It logs to the
 * standard output, a line of JSON for each event.
 *
 * @throws IndexerConfigurationError and ServiceStartError, which name all faults
 */
export async function runIndexer(options: {
  terminal: Terminal;
  progress: ProgressTerminal | undefined;
  file: string | undefined;
}): Promise<void> {
  const { terminal, progress, file } = options;
  await runIndexerService({
    env: terminal.env,
    file,
    terminal: progress,
    signal: terminal.signal,
    onServing: ({ url }) =>
      terminal.err(`Serving at ${url}; its page to try it is ${url}/docs. Ctrl-C stops it.`),
  });
  terminal.err("Stopped.");
}
