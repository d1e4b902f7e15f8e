import type { Network } from "@coinslot/protocol";
import type { StoredAmount, StoredSum } from "@coinslot/storage";
import type { Generated } from "kysely";

/**
 * Accounts of the books, as numbers in the rows. README.md, "Books", says which movement is between
 * which; `../books/README.md` those of channels. Numbers are a contract: append only.
 */
export const accounts = {
  /** Tokens at a recipient of sales (`payTo`). */
  wallet: 1,
  /** Sales. */
  income: 2,
  /** Sales given back. */
  refunds: 3,
  /** Tokens of the account that pays refunds. */
  float: 4,
  /** Gas that transactions have cost. */
  gas: 5,
  /** Native coin of the relayers. */
  relayers: 6,
  /** The counterpart of `locked`: it belongs to the buyers. */
  escrow: 7,
  /** Fees of others. No movement so far. */
  fees: 8,
  /**
   * Losses. Sales whose money a reorganisation deeper than final has taken away for good. Charges
   * of a channel that the escrow can no longer pay.
   */
  losses: 9,
  /** Charged on channels, and not claimed yet. */
  receivable: 10,
  /** Claimed at escrow contracts, and not sent to the recipient yet. */
  claimed: 11,
  /** Tokens of buyers in the channels of this seller, without those claimed. */
  locked: 12,
} as const;

export type Account = keyof typeof accounts;

/** One movement of money. Written by triggers, and by the mirror of channels. Never changed. */
export interface BookEntriesTable {
  /** Order of posting. */
  id: Generated<number>;
  /** The payment; of gas the transaction; of a channel its id, or that of the payout. */
  source_id: string;
  /** Account that receives the amount; a number of `accounts`. */
  debit: number;
  /** Account that gives it. */
  credit: number;
  amount: StoredAmount;
  network: Network;
  /** The token; empty for the native coin. */
  asset: string;
  /** Names of `sold_names`: the route and the recipient. `null` of gas, and where unknown. */
  route_id: number | null;
  pay_to_id: number | null;
  /** Unix milliseconds on the database's clock: never in a closed period. */
  posted_at: number;
  /** Of a channel: the block at which the chain was seen with it. Otherwise `null`. */
  block_number: Generated<number | null>;
}

/**
 * Entries that retention has replaced by their sum. One row per day, currency, route and accounts.
 */
export interface BookSumsTable {
  /** Whole days since 1970, in UTC. */
  day: number;
  network: Network;
  asset: string;
  /** A name of `sold_names`, or 0. */
  route_id: number;
  debit: number;
  credit: number;
  count: number;
  amount: StoredSum;
  /** SHA-256 over the digest before and each entry, in the order of their removal. */
  digest: string;
}

/** Closed periods. Each begins where the one before ends. */
export interface BookPeriodsTable {
  /** End, exclusive: Unix milliseconds. */
  closed_to: number;
  /** On the database's clock. */
  closed_at: number;
  /** SHA-256 over its sums by day; `null` until they are read. */
  digest: string | null;
}

/** One row: payments up to `posted_to`, of those up to `last_id`, were posted after the fact. */
export interface BookProgressTable {
  posted_to: string;
  last_id: string;
}

/** The tables of the books. */
export interface BookTables {
  book_entries: BookEntriesTable;
  book_sums: BookSumsTable;
  book_periods: BookPeriodsTable;
  book_progress: BookProgressTable;
}
