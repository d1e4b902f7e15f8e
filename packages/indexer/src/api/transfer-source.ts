import type { Address, Hash } from "viem";
import type { IndexedTransfer, TokenName, TransferEvent } from "../transfer.ts";
import type { TransferPlace } from "./cursor.ts";

/**
 * One page of the transfers of one token into and out of one address. Times are milliseconds, both
 * inclusive.
 */
export interface TransfersQuery extends TokenName {
  /** In lower case. */
  address: Address;
  limit: number;
  fromMs: number;
  toMs?: number | undefined;
  sort: "asc" | "desc";
  /** The end of the page before: only transfers after it in the order of `sort`. */
  after?: TransferPlace | undefined;
}

/** New transfers and retractions of one address after an event. */
export interface EventsQuery extends TokenName {
  address: Address;
  after: number;
  limit: number;
}

export interface EventsPage {
  events: TransferEvent[];
  /** All events up to this one have been looked at; the next page begins after it. */
  lastId: number;
  /** True if events after `after` have been forgotten: then history has to be read again. */
  isIncomplete: boolean;
}

/** Health of one token of one chain. */
export interface TokenHealth extends TokenName {
  isHealthy: boolean;
  /** Blocks from the newest indexed one to the chain's head. */
  lag: number | undefined;
  /** The last block up to which all are indexed. */
  indexedTo?: number | undefined;
  /** The last block up to which all were read twice, or proven. */
  verifiedTo?: number | undefined;
  rpcLatencyMs: number | undefined;
}

export interface SourceHealth {
  status: "healthy" | "degraded" | "unhealthy";
  isDatabaseHealthy: boolean;
  tokens: readonly TokenHealth[];
}

/** Interface of the API to an indexer: the engine is one, and a test may bring another. */
export interface TransferSource {
  /** The served chains, in the order of the configuration. */
  readonly chains: readonly { name: string; tokens: readonly { name: string }[] }[];
  readTransfers(query: TransfersQuery): Promise<IndexedTransfer[]>;
  /** All transfers of one token in one transaction, in their order. */
  readTransactionTransfers(
    query: TokenName & { transactionHash: Hash },
  ): Promise<IndexedTransfer[]>;
  readBalance(query: TokenName & { address: Address }): Promise<bigint>;
  /** Never rejects: the result reports a database that is away. */
  readHealth(): Promise<SourceHealth>;
  readEvents(query: EventsQuery): Promise<EventsPage>;
  /** The newest event of all tokens; 0 before the first. */
  readLastEventId(): Promise<number>;
  /**
   * Calls back when there may be new events, in this process or another. Returns a function that
   * ends the calls.
   */
  onEvents(listener: () => void): () => void;
}
