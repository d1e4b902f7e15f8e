export {
  devnetChain,
  type IndexerChainName,
  type IndexerChainOptions,
  indexerChain,
  indexerChainNames,
  isIndexerChainName,
} from "./chains/indexer-chain.ts";
export type { ChainOptions, TokenOptions } from "./configuration.ts";
export { IndexerConfigurationError } from "./configuration-error.ts";
export { createIndexer, type IndexerOptions } from "./create-indexer.ts";
export type { ProgressTerminal } from "./history/progress.ts";
export type { IndexedChain, IndexedToken, Indexer } from "./indexer.ts";
export type { IndexerLogger } from "./logger.ts";
export { BalanceUnavailableError } from "./query/balance-unavailable-error.ts";
export { UnknownTokenError } from "./query/unknown-token-error.ts";
export type { BalanceDifference } from "./spot-check.ts";
export type { ChainState, ChainStatus, Health, IndexerStatus, TokenStatus } from "./status.ts";
export type { IndexerSchema } from "./store/schema.ts";
export type { IndexedTransfer, TokenName, Transfer, TransferEvent } from "./transfer.ts";
