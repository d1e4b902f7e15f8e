/** Sells the indexing API by the request. The README lists its environment variables. */
import { once } from "node:events";
import {
  createLogger,
  type Environment,
  EnvironmentFileError,
  loadEnvironment,
} from "@coinslot/hosting";
import { ConfigurationError } from "@coinslot/protocol";
import { readConfiguration } from "./read-configuration.ts";
import { settings } from "./settings.ts";
import { startPaidIndexer } from "./start-paid-indexer.ts";

async function main(): Promise<void> {
  const stop = Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")]);
  const configuration = readConfiguration(readEnvironment());
  const logger = createLogger(configuration.logLevel);
  const seller = await startPaidIndexer(configuration, { logger });
  logger.info({ url: seller.url }, "Selling");
  await stop;
  logger.info({}, "Stopping");
  await seller.stop();
}

/**
 * The environment, with the settings of the folder's .env; a variable of the environment itself
 * wins.
 */
function readEnvironment(): Environment {
  try {
    return loadEnvironment({ environment: process.env, folder: process.cwd(), settings }).env;
  } catch (error) {
    if (!(error instanceof EnvironmentFileError)) throw error;
    throw new ConfigurationError("The paid indexer", [error.message], { cause: error });
  }
}

main().catch((error: unknown) => {
  console.error(error instanceof ConfigurationError ? error.message : error);
  // Remaining handles must not keep the process alive.
  process.exit(1);
});
