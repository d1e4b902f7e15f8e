import {
  type ProgressTerminal,
  readServiceConfiguration,
  startIndexerService,
} from "@coinslot/indexer";
import { pino, stdSerializers } from "pino";
import { type Terminal, untilInterrupted } from "../terminal.ts";

/**
 * Runs the indexing service until it is interrupted, then ends it in order. It logs to the standard
 * output, a line of JSON for each event.
 *
 * @throws IndexerConfigurationError and ServiceStartError, which say all that is wrong
 */
export async function runIndexer(options: {
  terminal: Terminal;
  progress: ProgressTerminal | undefined;
  file: string | undefined;
}): Promise<void> {
  const { terminal, progress, file } = options;
  const configuration = readServiceConfiguration({ env: terminal.env, file });
  const logger = pino({
    level: configuration.logLevel,
    serializers: { error: stdSerializers.err },
  });
  const service = await startIndexerService(configuration, { logger, terminal: progress });
  try {
    terminal.err(
      `Serving at ${service.url}; its page to try it is ${service.url}/docs. Ctrl-C stops it.`,
    );
    await untilInterrupted(terminal);
  } finally {
    await service.stop();
  }
  terminal.err("Stopped.");
}
