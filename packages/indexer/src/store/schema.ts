import type { StoredAmount } from "@coinslot/storage";
import type { Generated } from "kysely";

/**
 * A chain as the writing process sees it, for every process that serves. Times are the database's.
 */
interface ChainsTable {
  chain_id: number;
  name: string;
  state: "history" | "live" | "stopped";
  /** Reason for which it is stopped, or the last problem. */
  problem: string | null;
  /** The newest block that an endpoint reported, and its own time. */
  head_number: number | null;
  head_timestamp_ms: number | null;
  /** The last block that can no longer be replaced. */
  finalized_number: number | null;
  /** Times of the writer's last poll of the chain, and of its last progress. */
  seen_at_ms: number;
  progress_at_ms: number;
  /**
   * Transfers from this block on are announced as events; null until the first hand-over to live.
   */
  announced_from: number | null;
  /**
   * The first block after the first hand-over to live, which nothing lowers: a rewind lowers
   * `announced_from` alone. Transfers below it are new to no receiver of webhooks. Null where a
   * process of the release before has announced the first ones.
   */
  told_from: number | null;
}

interface TokensTable {
  id: Generated<number>;
  chain_id: number;
  address: Uint8Array;
  name: string;
  /**
   * 1 where no address can have had a balance before the first indexed block; 0 where that is not
   * known.
   */
  opens_at_zero: number;
  /** Counts changes below the newest range; see `openings`. */
  revision: number;
}

/**
 * The blocks of a token that are indexed: disjoint, `from_block` up to but not including
 * `next_block`.
 */
interface RangesTable {
  token_id: number;
  from_block: number;
  next_block: number;
}

interface TransfersTable {
  token_id: number;
  /** See `positionOf`. */
  position: number;
  transaction_index: number;
  /** Place among the transfers of the same token in the transaction. */
  transfer_index: number;
  transaction_hash: Uint8Array;
  from_address: Uint8Array;
  to_address: Uint8Array;
  amount: StoredAmount;
}

/** Every block that holds a transfer. */
interface BlocksTable {
  chain_id: number;
  number: number;
  hash: Uint8Array;
  timestamp_ms: number;
}

/** Every block that may still be replaced, and below them the newest one that may not. */
interface WindowTable {
  chain_id: number;
  number: number;
  hash: Uint8Array;
}

/**
 * The blocks of a token that were read twice, or proven: a part of its indexed ranges. See the
 * README's states.
 */
type VerifiedRangesTable = RangesTable;

/** Results of a chain's second readings. */
interface ChecksTable {
  chain_id: number;
  /**
   * Provability: the receipts have the roots that the blocks name, or not; null until one was read.
   */
  proofs: "provable" | "unprovable" | null;
  /** Reason for which second readings do not go on, for an operator. */
  problem: string | null;
  /** Blocks whose stored transfers were not those of the chain. */
  repaired_blocks: Generated<number>;
  repaired_at_ms: number | null;
  /** The lowest block that is final here, and another one at every endpoint. */
  doubted_from: number | null;
  doubted_since_ms: number | null;
}

/**
 * Hashes of blocks that were final when they were read, to find a common block by. The oldest are
 * forgotten.
 */
type MarksTable = WindowTable;

/** Work requested of the writing process, by itself or by a command. */
interface RequestsTable {
  id: Generated<number>;
  chain_id: number;
  kind: "verify" | "reindex" | "rewind";
  /** Null: every token of the chain. */
  token_id: number | null;
  from_block: number;
  /** Null: no end. */
  next_block: number | null;
  requested_at_ms: number;
  done_at_ms: number | null;
}

/** Gain of an address since the first indexed block, modulo 2^256. */
interface BalancesTable {
  token_id: number;
  address: Uint8Array;
  amount: StoredAmount;
}

/** Balance of an address before the first indexed block, modulo 2^256, where a caller asked. */
interface OpeningsTable {
  token_id: number;
  address: Uint8Array;
  amount: StoredAmount;
}

/** Events at the live end, in the order of commits; the oldest are forgotten. */
interface EventsTable extends TransfersTable {
  id: Generated<number>;
  kind: "transfer" | "retraction";
  block_hash: Uint8Array;
  timestamp_ms: number;
}

/** An address, and a receiver of webhooks that hears about its transfers. */
interface WatchedTable {
  address: Uint8Array;
  endpoint_id: string;
}

/** A transfer that a receiver knows of: the facts as they were told. */
interface ToldTable {
  token_id: number;
  position: number;
  endpoint_id: string;
  chain_id: number;
  block_number: number;
  block_hash: Uint8Array;
  transaction_hash: Uint8Array;
  /** Orders its events. */
  key: string;
  /** JSON: the `data` of its events. */
  payload: string;
  /** Null until it was told as final. */
  final_at_ms: number | null;
}

/**
 * A receiver of `transfer.reverted` for an address in a transaction. Where the transaction is
 * included again, it gets `transfer.included`, also after `unwatch`.
 */
interface RevertedTable {
  token_id: number;
  transaction_hash: Uint8Array;
  endpoint_id: string;
  /** In lowercase, as in the event. */
  address: string;
  reverted_at_ms: number;
}

/**
 * A receiver that watches an address of a transfer of a retracted final block, and was not sent its
 * inclusion. The transfer is from before the address was watched, or was read without events.
 * Included again, it is not sent either.
 */
interface UnsentTable {
  token_id: number;
  transaction_hash: Uint8Array;
  endpoint_id: string;
  /** In lowercase, as in events. */
  address: string;
  reverted_at_ms: number;
}

/** One row: the last event of `indexer_events` whose addresses were matched. */
interface TellingTable {
  id: number;
  last_event: number;
}

export interface IndexerSchema {
  indexer_chains: ChainsTable;
  indexer_tokens: TokensTable;
  indexer_ranges: RangesTable;
  indexer_transfers: TransfersTable;
  indexer_blocks: BlocksTable;
  indexer_window: WindowTable;
  indexer_balances: BalancesTable;
  indexer_openings: OpeningsTable;
  indexer_events: EventsTable;
  indexer_verified_ranges: VerifiedRangesTable;
  indexer_checks: ChecksTable;
  indexer_marks: MarksTable;
  indexer_requests: RequestsTable;
  indexer_watched: WatchedTable;
  indexer_told: ToldTable;
  indexer_reverted: RevertedTable;
  indexer_unsent: UnsentTable;
  indexer_telling: TellingTable;
}
