export { createLogger, type LogLevel, logLevels } from "./create-logger.ts";
export * from "./environment.ts";
export {
  type CallerKey,
  createCallerKey,
  isCallerName,
  type NewCallerKey,
} from "./facilitator/caller-keys.ts";
export { type RunFacilitatorOptions, runFacilitatorService } from "./facilitator/run-service.ts";
export { runFacilitatorTrial, type TrialChain } from "./facilitator/run-trial.ts";
export {
  type FacilitatorServiceConfiguration,
  type FacilitatorSources,
  readFacilitatorServiceConfiguration,
} from "./facilitator/service-configuration.ts";
export { type FacilitatorService, startFacilitatorService } from "./facilitator/start-service.ts";
export {
  type HttpServer,
  ListenError,
  type ListenOptions,
  startHttpServer,
} from "./http-server.ts";
export {
  type CommandOutput,
  KeysUsageError,
  keysUsage,
  runKeysCommand,
} from "./indexer/keys-command.ts";
export {
  createMeteredIndexer,
  describeIndexerFault,
  type MeteredIndexer,
} from "./indexer/metered-indexer.ts";
export { type RunIndexerOptions, runIndexerService } from "./indexer/run-service.ts";
export {
  type IndexerServiceConfiguration,
  type IndexerSources,
  readIndexerDatabaseUrl,
  readIndexerServiceConfiguration,
} from "./indexer/service-configuration.ts";
export { ServiceStartError } from "./indexer/service-start-error.ts";
export { type IndexerService, startIndexerService } from "./indexer/start-service.ts";
export { keepAnswer } from "./keep-answer.ts";
export { type MetricsPage, probeRouter, type Readiness } from "./probes.ts";
export { readSettingsFile } from "./read-settings-file.ts";
