import type { Hex } from "@coinslot/protocol";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import type { BookEntry, BookRange, BookSum } from "./book-entry.ts";
import { checkEntries } from "./check-entries.ts";
import type { BookCheckPage } from "./check-page.ts";
import { digestPeriod } from "./digest-period.ts";
import { type ChainTransfer, findTransfer, findUnconfirmed } from "./find-transfer.ts";
import { readCharges } from "./read-charges.ts";
import { readEntries } from "./read-entries.ts";
import { readClosedSums } from "./read-sums.ts";
import { readSale } from "./receipt.ts";
import { sumEntries } from "./sum-entries.ts";

/** State of the books. */
export interface BooksStatus {
  /** Ends of the closed periods, in Unix milliseconds, the newest first; and their digests. */
  periods: { closedTo: number; closedAt: number; digest: string | undefined }[];
  /** True while payments from before the books are being posted. */
  isUnfinished: boolean;
  /** Transactions in blocks whose gas has no known price: it is not in the books. */
  unpricedTransactions: number;
}

/** Reads of the books. All of them stream: memory does not grow with the time that is read. */
export interface BooksReader {
  status(): Promise<BooksStatus>;
  /** Every movement, in the order of posting times. Without those of `closedSums` and `charges`. */
  entries(range: BookRange): AsyncGenerator<BookEntry[], void, void>;
  /** Sums by day, currency, route and accounts. */
  sums(range: BookRange): AsyncGenerator<BookSum[], void, void>;
  /**
   * Entries of forgotten payments: retention has closed them into sums. They are in `sums`, too.
   */
  closedSums(range: BookRange): AsyncGenerator<BookSum[], void, void>;
  /** Charges of channels, by day: they have no entries. They are in `sums`, too. */
  charges(range: BookRange): AsyncGenerator<BookSum[], void, void>;
  /** A payment, with the things that it bought: the parts of its receipt. */
  sale(id: string): ReturnType<typeof readSale>;
  /** SHA-256 of a closed period: it stays the same while the period does. */
  digest(range: BookRange): Promise<string>;
  /** Compares payments with entries, and lists the transfers that the chain must have. */
  check(range: BookRange): AsyncGenerator<BookCheckPage, void, void>;
  /** Id of the payment that a transfer has made. */
  findTransfer(transfer: ChainTransfer): Promise<string | undefined>;
  /** Payments that are not confirmed, and that a transfer may have made: by their nonces. */
  findUnconfirmed(transfer: ChainTransfer): Promise<{ id: string; nonce: Hex }[]>;
}

export function createBooksReader(reads: LedgerReads): BooksReader {
  return {
    status: () => readStatus(reads),
    entries: (range) => readEntries(reads, range),
    sums: (range) => sumEntries(reads, range),
    closedSums: (range) => readClosedSums(reads, range),
    charges: (range) => readCharges(reads, range),
    sale: (id) => readSale(reads, id),
    digest: (range) => digestPeriod(reads, range),
    check: (range) => checkEntries(reads, range),
    findTransfer: (transfer) => findTransfer(reads, transfer),
    findUnconfirmed: (transfer) => findUnconfirmed(reads, transfer),
  };
}

async function readStatus({ db }: LedgerReads): Promise<BooksStatus> {
  const rows = await db
    .selectFrom("book_periods")
    .selectAll()
    .orderBy("closed_to", "desc")
    .execute();
  const { posted_to, last_id } = await db
    .selectFrom("book_progress")
    .selectAll()
    .executeTakeFirstOrThrow();
  const { count } = await db
    .selectFrom("transactions")
    .select((row) => row.fn.countAll<number>().as("count"))
    .where("state", "in", ["settled", "final"])
    .where("gas_cost", "is", null)
    .executeTakeFirstOrThrow();
  return {
    periods: rows.map(({ closed_to, closed_at, digest }) => ({
      closedTo: closed_to,
      closedAt: closed_at,
      digest: digest ?? undefined,
    })),
    isUnfinished: posted_to < last_id,
    unpricedTransactions: Number(count),
  };
}
