/** The indexing service: reads environment and file, follows chains, serves the API. `--help` says more. */
import { once } from "node:events";
import {
  type ConfigurationSources,
  IndexerConfigurationError,
  type IndexerService,
  readDatabaseUrl,
  readServiceConfiguration,
  runKeysCommand,
  ServiceStartError,
  startIndexerService,
  UsageError,
} from "@coinslot/indexer";
import { pino, stdSerializers } from "pino";
import { type DemoChain, startDemoChain } from "./demo-chain.ts";
import { readArguments, usage } from "./read-arguments.ts";

async function main(): Promise<void> {
  const { isHelp, isDevnet, file, keysArgs } = readArguments(process.argv.slice(2));
  if (isHelp) return console.log(usage);
  const sources = { env: process.env, file };
  if (keysArgs !== undefined) {
    const output = { out: console.log, note: console.error };
    return runKeysCommand(keysArgs, { databaseUrl: readDatabaseUrl(sources), output });
  }
  const stop = Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")]);
  if (!isDevnet) return serve(sources, { until: stop });
  const demo = await startDemoChain();
  try {
    await serve({ ...sources, overrides: demo.overrides }, { until: stop, demo });
  } finally {
    await demo.stop();
  }
}

async function serve(
  sources: ConfigurationSources,
  { until, demo }: { until: Promise<unknown>; demo?: DemoChain },
): Promise<void> {
  const configuration = readServiceConfiguration(sources);
  const level = demo === undefined ? configuration.logLevel : "warn";
  const logger = pino({ level, serializers: { error: stdSerializers.err } });
  const terminal = demo === undefined ? process.stderr : undefined;
  const service: IndexerService = await startIndexerService(configuration, { logger, terminal });
  try {
    logger.info({ url: service.url }, "Serving");
    if (demo !== undefined) console.log(await demo.introduce(service));
    await until;
    logger.info({}, "Stopping");
  } finally {
    await service.stop();
  }
}

main().catch((error: unknown) => {
  const isExpected =
    error instanceof IndexerConfigurationError || error instanceof ServiceStartError;
  if (error instanceof UsageError) console.error(`${error.message}\n\n${usage}`);
  else console.error(isExpected ? error.message : error);
  // Whatever still holds the process is of no use to anybody.
  process.exit(1);
});
