export { IndexerConfigurationError } from "./configuration-error.ts";
export type { IndexedChain, IndexedToken, Indexer } from "./indexer.ts";
export type { IndexerLogger } from "./logger.ts";
export { BalanceUnavailableError } from "./query/balance-unavailable-error.ts";
export { UnknownTokenError } from "./query/unknown-token-error.ts";
export type { ChainState, ChainStatus, Health, IndexerStatus, TokenStatus } from "./status.ts";
export type { IndexerSchema } from "./store/schema.ts";
export type { IndexedTransfer, TokenName, Transfer, TransferEvent } from "./transfer.ts";
