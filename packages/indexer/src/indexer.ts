import type { Database } from "@coinslot/storage";
import type { Address } from "viem";
import type { TransferSource } from "./api/transfer-source.ts";
import type { OwnedReceiver } from "./api/webhook-operations.ts";
import type { IndexerStatus } from "./status.ts";
import type { IndexerSchema } from "./store/schema.ts";

/** A token as configured. */
export interface IndexedToken {
  /** In paths and answers, such as `usdt`. */
  name: string;
  /** In lowercase. */
  address: Address;
  decimals: number;
  startBlock: number;
}

export interface IndexedChain {
  /** In paths and answers, such as `plasma`. */
  name: string;
  chainId: number;
  tokens: readonly IndexedToken[];
}

/**
 * Follows chains, and answers queries about their transfers and balances. Every query names a token
 * by the names of the configuration, and throws an `UnknownTokenError` for any other. A
 * `DatabaseError` means that the database does not answer.
 */
export interface Indexer extends TransferSource {
  readonly chains: readonly IndexedChain[];
  /** Receivers of this process's options, and the owners whose API keys may act on them. */
  readonly receivers: readonly OwnedReceiver[];
  /** Opens the database and brings its tables up to date. Every other method waits for it. */
  ready(): Promise<void>;
  /**
   * Begins to follow the chains, or to stand by while another process does. Without it, the indexer
   * only answers queries.
   */
  start(): Promise<void>;
  status(): Promise<IndexerStatus>;
  /** The database, for data to be kept beside the transfers, such as API keys. */
  database(): Promise<Database<IndexerSchema>>;
  /** Finishes the write under way, and lets another process take over at once. */
  close(): Promise<void>;
}
