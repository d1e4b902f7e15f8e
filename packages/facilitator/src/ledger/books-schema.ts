import type { Network } from "@coinslot/protocol";
import type { StoredAmount, StoredSum } from "@coinslot/storage";
import type { Generated } from "kysely";

/**
 * Accounts of the books, as numbers in the rows. README.md, "Books", says which movement is between
 * which. Numbers are a contract: append only.
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
  /** Deposits of buyers that are not claimed yet. No movement so far. */
  escrow: 7,
  /** Fees of others. No movement so far. */
  fees: 8,
} as const;

export type Account = keyof typeof accounts;

/** One movement of money. Written by triggers, never changed. */
export interface BookEntriesTable {
  /** Order of posting. */
  id: Generated<number>;
  /** The payment, or, of gas, the transaction. */
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
}

/** Entries that retention has replaced by their sum. One row per day, currency, route and accounts. */
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
