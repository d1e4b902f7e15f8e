import { once } from "node:events";
import type { Logger } from "pino";
import { createLogger } from "../create-logger.ts";
import {
  type FacilitatorSources,
  readFacilitatorServiceConfiguration,
} from "./service-configuration.ts";
import { type FacilitatorService, startFacilitatorService } from "./start-service.ts";

export interface RunFacilitatorOptions extends FacilitatorSources {
  /** Ends the service gracefully. */
  signal: AbortSignal;
  /** Default: JSON lines on standard output, from the configured level on. */
  logger?: Logger | undefined;
  /** Called when the service accepts requests. */
  onServing?: ((service: FacilitatorService) => void) | undefined;
}

/**
 * Runs the hosted facilitator until the signal: reads its configuration, starts, serves, and ends
 * in order.
 *
 * @example
 * ```ts
 * const interrupted = new AbortController();
 * process.once("SIGTERM", () => interrupted.abort());
 *
 * // Serves /verify, /settle and /supported until SIGTERM, then ends in order.
 * await runFacilitatorService({ env: process.env, signal: interrupted.signal });
 * ```
 *
 * @throws ConfigurationError with all problems of the settings, or, where there are none, of the
 * start
 */
export async function runFacilitatorService(options: RunFacilitatorOptions): Promise<void> {
  const { env, file, signal, onServing } = options;
  const configuration = readFacilitatorServiceConfiguration({ env, file });
  const { logger = createLogger(configuration.logLevel) } = options;
  const service = await startFacilitatorService(configuration, { logger });
  try {
    logger.info({ url: service.url }, "Serving");
    onServing?.(service);
    if (!signal.aborted) await once(signal, "abort");
    logger.info({}, "Stopping");
  } finally {
    await service.stop();
  }
}
