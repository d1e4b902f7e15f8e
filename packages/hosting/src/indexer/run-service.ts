import { once } from "node:events";
import type { ProgressTerminal } from "@coinslot/indexer";
import type { Logger } from "pino";
import { createLogger } from "../create-logger.ts";
import { type IndexerSources, readIndexerServiceConfiguration } from "./service-configuration.ts";
import { type IndexerService, startIndexerService } from "./start-service.ts";

export interface RunIndexerOptions extends IndexerSources {
  /** Ends the service gracefully. */
  signal: AbortSignal;
  /** Default: JSON lines on standard output, from the configured level on. */
  logger?: Logger | undefined;
  /** Terminal for a progress bar. */
  terminal?: ProgressTerminal | undefined;
  /** Called when the service accepts requests. */
  onServing?: ((service: IndexerService) => void | Promise<void>) | undefined;
}

/**
 * Runs the indexing service until the signal: reads its configuration, starts, serves, and ends in
 * order.
 *
 * @throws IndexerConfigurationError with all problems of the settings; ServiceStartError with those
 *   of the start
 */
export async function runIndexerService(options: RunIndexerOptions): Promise<void> {
  const { signal, terminal, onServing, ...sources } = options;
  const configuration = readIndexerServiceConfiguration(sources);
  const { logger = createLogger(configuration.logLevel) } = options;
  const service = await startIndexerService(configuration, { logger, terminal });
  try {
    logger.info({ url: service.url }, "Serving");
    await onServing?.(service);
    if (!signal.aborted) await once(signal, "abort");
    logger.info({}, "Stopping");
  } finally {
    await service.stop();
  }
}
