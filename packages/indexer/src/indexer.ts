import type { Database } from "@coinslot/storage";
import type { Address, Hash } from "viem";
import type { ListTransfers, TransferPage } from "./query/list-transfers.ts";
import type { IndexerStatus } from "./status.ts";
import type { IndexerSchema } from "./store/schema.ts";
import type { IndexedTransfer, TokenName, TransferEvent } from "./transfer.ts";

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

export interface SubscribeOptions extends TokenName {
  /** Only transfers from or to this address. Default: all. */
  address?: Address | undefined;
  /**
   * Begin after the event of this id instead of with what comes. Where it is so old that what followed is forgotten,
   * the subscriber is first told `{ type: "missed" }`.
   */
  afterEventId?: number | undefined;
  onEvent: (event: TransferEvent | { type: "missed" }) => void;
}

/**
 * Follows chains, and answers what it has seen. Every query names a token by the names of the configuration and
 * throws an `UnknownTokenError` for any other; a `DatabaseError` means that the database does not answer.
 */
export interface Indexer {
  readonly chains: readonly IndexedChain[];
  /** Opens the database and brings its tables up to date. Everything else waits for it. */
  ready(): Promise<void>;
  /** Begins to follow the chains, or to stand by while another process does. Without it, it only answers. */
  start(): Promise<void>;
  listTransfers(query: TokenName & ListTransfers): Promise<TransferPage>;
  /** In the token's smallest unit, after the newest indexed block. Throws a `BalanceUnavailableError`. */
  balanceOf(query: TokenName & { address: Address }): Promise<bigint>;
  transfersOfTransaction(query: TokenName & { transactionHash: Hash }): Promise<IndexedTransfer[]>;
  /** New transfers at the live end, and those that a reorganisation takes back. Resolves to the function that ends it. */
  subscribe(options: SubscribeOptions): Promise<() => void>;
  status(): Promise<IndexerStatus>;
  /** For what else is to be kept beside the transfers, such as API keys. */
  database(): Promise<Database<IndexerSchema>>;
  /** Finishes what is being written, and lets another process take over at once. */
  close(): Promise<void>;
}
