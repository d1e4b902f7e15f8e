import { describeIndexerFault, readIndexerServiceConfiguration } from "@coinslot/hosting";
import {
  IndexerConfigurationError,
  MaintenanceError,
  type MaintenanceProgress,
  type MaintenanceWish,
  runMaintenance,
} from "@coinslot/indexer";
import { UsageError } from "../exit-code.ts";
import type { Terminal } from "../terminal.ts";

const silent = { info() {}, warn() {}, error() {} };

/**
 * Runs maintenance of the index to its end, and shows its progress.
 *
 * @throws UsageError for a chain or token that the configuration does not have
 */
export async function runIndexerMaintenance(options: {
  terminal: Terminal;
  file: string | undefined;
  wish: MaintenanceWish;
}): Promise<void> {
  const { terminal, file, wish } = options;
  const { indexer: configuration } = readIndexerServiceConfiguration({ env: terminal.env, file });
  let last = "";
  const onProgress = (progress: MaintenanceProgress) => {
    const text = describeProgress(wish, progress);
    if (text !== last) terminal.err(text);
    last = text;
  };
  const { signal } = terminal;
  try {
    const { repairedBlocks } = await runMaintenance({
      configuration,
      wish,
      logger: silent,
      signal,
      onProgress,
    });
    terminal.out(
      wish.kind === "rewind"
        ? `${wish.chain} stands at block ${wish.from - 1}, and is followed from there.`
        : `${wish.chain} is verified; ${repairedBlocks} blocks were repaired.`,
    );
  } catch (error) {
    if (signal.aborted) return terminal.err("Stopped. The next service that runs does the rest.");
    if (error instanceof MaintenanceError) throw new UsageError(error.message, { cause: error });
    if (error instanceof IndexerConfigurationError) throw error;
    throw new Error(describeIndexerFault(error), { cause: error });
  }
}

function describeProgress(
  { kind, chain }: MaintenanceWish,
  { phase, share, repairedBlocks, problem }: MaintenanceProgress,
): string {
  const trouble = problem === undefined || phase === "done" ? "" : ` (${problem})`;
  if (phase === "waiting")
    return `${kind} ${chain}: requested of the process that writes ...${trouble}`;
  const mended = repairedBlocks === 0 ? "" : `, ${repairedBlocks} blocks repaired`;
  return `${kind} ${chain}: ${Math.floor(100 * share)}%${mended}${trouble}`;
}
