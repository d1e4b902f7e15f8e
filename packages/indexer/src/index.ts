export { ApiError, type ApiErrorOptions } from "./api/api-error.ts";
export { openKeyStore } from "./api/api-stores.ts";
export { ApiUnreachableError } from "./api/client/api-unreachable-error.ts";
export {
  createIndexerClient,
  type IndexerClient,
  type IndexerClientOptions,
} from "./api/client/indexer-client.ts";
export type { WatchedEvent, WatchOptions } from "./api/client/watch-transfers.ts";
export type { TransferPlace } from "./api/cursor.ts";
export { answerNotFound, createErrorHandler } from "./api/error-answer.ts";
export type { KeyCheck, KeyStore, KeyWish, StoredKey } from "./api/keys/key-store.ts";
export { createDatabaseHitCounter, hitsMigration } from "./api/limits/database-hit-counter.ts";
export type { HitCounter, Hits } from "./api/limits/hit-counter.ts";
export type { Limit } from "./api/limits/limit.ts";
export { type ApiSource, type TransferApiOptions, transferApi } from "./api/transfer-api.ts";
export {
  createTransferService,
  type TransferHistoryQuery,
  type TransferPage,
  type TransferService,
} from "./api/transfer-service.ts";
export type {
  EventsPage,
  EventsQuery,
  SourceHealth,
  TokenHealth,
  TransferSource,
  TransfersQuery,
} from "./api/transfer-source.ts";
export type { BalanceBody } from "./api/wire/balance.ts";
export type { ChainsBody } from "./api/wire/chains.ts";
export type { ErrorBody } from "./api/wire/error.ts";
export type { HealthBody } from "./api/wire/health.ts";
export type { KeyCreated, KeyInfo, KeyRequest } from "./api/wire/key.ts";
export type { TransferRecord, TransfersBody } from "./api/wire/transfer.ts";
export type { BalanceQuery } from "./api/wire/transfer-query.ts";
export {
  devnetChain,
  type IndexerChainName,
  type IndexerChainOptions,
  indexerChain,
  indexerChainNames,
  isIndexerChainName,
} from "./chains/indexer-chain.ts";
export type { ChainOptions, IndexerConfigurationInput, TokenOptions } from "./configuration.ts";
export { IndexerConfigurationError } from "./configuration-error.ts";
export { createIndexer, type IndexerOptions } from "./create-indexer.ts";
export type { ProgressTerminal } from "./history/progress.ts";
export type { IndexedChain, IndexedToken, Indexer } from "./indexer.ts";
export type { IndexerLogger } from "./logger.ts";
export {
  MaintenanceError,
  type MaintenanceProgress,
  type MaintenanceWish,
  runMaintenance,
} from "./maintenance/run-maintenance.ts";
export { BalanceUnavailableError } from "./query/balance-unavailable-error.ts";
export { ChainStoppedError } from "./query/chain-stopped-error.ts";
export { UnknownTokenError } from "./query/unknown-token-error.ts";
export { describeUnreadable } from "./service/describe-unreadable.ts";
export {
  type HttpServer,
  ListenError,
  type ListenOptions,
  startHttpServer,
} from "./service/http-server.ts";
export { keepAnswer } from "./service/keep-answer.ts";
export {
  type CommandOutput,
  keysUsage,
  runKeysCommand,
  UsageError,
} from "./service/keys-command.ts";
export {
  type EnvironmentFile,
  EnvironmentFileError,
  type LoadedEnvironment,
  loadEnvironment,
} from "./service/load-environment.ts";
export {
  createMeteredIndexer,
  describeIndexerFault,
  type MeteredIndexer,
} from "./service/metered-indexer.ts";
export { probeRouter } from "./service/probes.ts";
export { readRegularFile } from "./service/read-regular-file.ts";
export { type Environment, readSecret } from "./service/read-secret.ts";
export {
  type ConfigurationSources,
  readDatabaseUrl,
  readServiceConfiguration,
  type ServiceConfiguration,
} from "./service/service-configuration.ts";
export { ServiceStartError } from "./service/service-start-error.ts";
export {
  type IndexerSettingName,
  indexerSettings,
  type Setting,
} from "./service/settings.ts";
export { type IndexerService, startIndexerService } from "./service/start-service.ts";
export type { BalanceDifference } from "./spot-check.ts";
export type { ChainState, ChainStatus, Health, IndexerStatus, TokenStatus } from "./status.ts";
export type { IndexerSchema } from "./store/schema.ts";
export type { IndexedTransfer, TokenName, Transfer, TransferEvent } from "./transfer.ts";
export type { Repair } from "./verify/repair.ts";
