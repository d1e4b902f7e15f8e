export { ApiError } from "./api/api-error.ts";
export { openKeyStore } from "./api/api-stores.ts";
export { ApiUnreachableError } from "./api/client/api-unreachable-error.ts";
export {
  createIndexerClient,
  type IndexerClient,
  type IndexerClientOptions,
} from "./api/client/indexer-client.ts";
export type { WatchedEvent, WatchOptions } from "./api/client/watch-transfers.ts";
export { answerNotFound, createErrorHandler } from "./api/error-answer.ts";
export type { KeyStore, KeyWish, StoredKey } from "./api/keys/key-store.ts";
export type { Limit } from "./api/limits/limit.ts";
export { type TransferApiOptions, transferApi } from "./api/transfer-api.ts";
export { createTransferService, type TransferService } from "./api/transfer-service.ts";
export type { TransferSource } from "./api/transfer-source.ts";
export type { BalanceBody } from "./api/wire/balance.ts";
export type { ChainsBody } from "./api/wire/chains.ts";
export type { HealthBody } from "./api/wire/health.ts";
export type { TransferRecord, TransfersBody } from "./api/wire/transfer.ts";
export {
  devnetChain,
  type IndexerChainName,
  type IndexerChainOptions,
  indexerChain,
  indexerChainNames,
  isIndexerChainName,
} from "./chains/indexer-chain.ts";
export {
  type ChainOptions,
  type IndexerConfigurationInput,
  readConfiguration,
  type TokenOptions,
} from "./configuration.ts";
export { IndexerConfigurationError } from "./configuration-error.ts";
export { createIndexer, type IndexerOptions } from "./create-indexer.ts";
export type { ProgressTerminal } from "./history/progress.ts";
export type { Indexer } from "./indexer.ts";
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
export type { BalanceDifference } from "./spot-check.ts";
export type { ChainStatus, Health, IndexerStatus, TokenStatus } from "./status.ts";
export type { IndexerSchema } from "./store/schema.ts";
export type { IndexedTransfer, Transfer, TransferEvent } from "./transfer.ts";
export type { Repair } from "./verify/repair.ts";
export {
  type DeadIndexerWebhook,
  type IndexerWebhook,
  IndexerWebhookError,
  type IndexerWebhookRange,
  type IndexerWebhooks,
  indexerWebhooks,
} from "./webhooks/indexer-webhooks.ts";
export type { DeliveredWebhook } from "./webhooks/start-webhooks.ts";
export { type TransferEventType, transferEventTypes } from "./webhooks/webhook-options.ts";
