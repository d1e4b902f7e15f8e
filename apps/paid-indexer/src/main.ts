/** Sells the indexing API by the request. The README says what it reads from the environment. */
import { once } from "node:events";
import { existsSync } from "node:fs";
import { ConfigurationError } from "@coinslot/protocol";
import { createLogger } from "./create-logger.ts";
import { readConfiguration } from "./read-configuration.ts";
import { startPaidIndexer } from "./start-paid-indexer.ts";

async function main(): Promise<void> {
  const stop = Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")]);
  loadEnvFile();
  const configuration = readConfiguration(process.env);
  const logger = createLogger(configuration.logLevel);
  const seller = await startPaidIndexer(configuration, { logger });
  logger.info({ url: seller.url }, "Selling");
  await stop;
  logger.info({}, "Stopping");
  await seller.stop();
}

/** Written by `coinslot init`; what is set in the environment itself wins. */
function loadEnvFile(): void {
  if (!existsSync(".env")) return;
  try {
    process.loadEnvFile();
  } catch (cause) {
    const problem = ".env: cannot be read. Make it a file that this user may read, or remove it";
    throw new ConfigurationError("The paid indexer", [problem], { cause });
  }
}

main().catch((error: unknown) => {
  console.error(error instanceof ConfigurationError ? error.message : error);
  // Whatever still holds the process is of no use to anybody.
  process.exit(1);
});
