import { type BooksReader, createBooksReader } from "../books/books-reader.ts";
import { type PaymentRecord, toRecords } from "../reads/payment-record.ts";
import type { Stop } from "../stops/stop.ts";
import { readStops } from "./maintenance/stops.ts";
import { openLedger } from "./open-ledger.ts";
import type { LedgerPayment } from "./payments/ledger-payment.ts";
import {
  getPayment,
  listPayments,
  type PaymentFilter,
  type PaymentPage,
} from "./queries/list-payments.ts";
import { listRelayers, type RelayerStanding } from "./queries/list-relayers.ts";
import { type PaymentStats, paymentStats, type StatsOptions } from "./queries/payment-stats.ts";

import { getRefund, listRefunds } from "./refunds/list-refunds.ts";
import type { Refund, RefundFilter, RefundPage } from "./refunds/refund.ts";

/** A page of payments as records. */
export interface PaymentRecordPage {
  records: PaymentRecord[];
  /** Pass it as `cursor`; `undefined` at the end. */
  nextCursor?: string | undefined;
}

/** A ledger for programs that only read. */
export interface LedgerReader {
  readonly payments: {
    /** The newest first, page by page. */
    list(filter?: PaymentFilter): Promise<PaymentPage>;
    /** By the id that the ledger gave it. */
    get(id: string): Promise<LedgerPayment | undefined>;
    /** As `list`, with what each payment has bought. */
    records(filter?: PaymentFilter): Promise<PaymentRecordPage>;
  };
  readonly refunds: {
    /** The newest first, page by page. */
    list(filter?: RefundFilter): Promise<RefundPage>;
    get(id: string): Promise<Refund | undefined>;
  };
  /** Counts and sums by network, asset and state, and by day and route if asked for. */
  stats(options?: StatsOptions): Promise<PaymentStats[]>;
  /** The stop switches that are set. */
  stops(): Promise<Stop[]>;
  /** The books in double entry. */
  readonly books: BooksReader;
  /** The relayers that a process has, or ever had, and what is in flight from each. */
  relayers(): Promise<RelayerStanding[]>;
  close(): Promise<void>;
}

/**
 * Opens a ledger for reading, while sellers go on working with it. Takes no lock, and can write
 * nothing. The methods are those of a facilitator, and throw a `DatabaseError` on faults of the
 * database.
 *
 * @example
 * ```ts
 * const ledger = await openLedgerReader({ url: "sqlite:./coinslot.db" });
 * const { payments, nextCursor } = await ledger.payments.list({
 *   network: "eip155:9745",
 *   limit: 20,
 * });
 * const stats = await ledger.stats();
 * await ledger.close();
 * ```
 *
 * @param options `url`: `sqlite:./file.db` or `postgres://…`
 * @throws DatabaseError when it cannot be reached, is not there, or is of another version
 */
export async function openLedgerReader({ url }: { url: string }): Promise<LedgerReader> {
  const { database, close } = await openLedger({ url, processId: "reader", readOnly: true });
  const reads = { db: database.kysely, dialect: database.dialect };
  return {
    payments: {
      list: (filter = {}) => listPayments(reads, filter),
      get: (id) => getPayment(reads, id),
      async records(filter = {}) {
        const { payments, nextCursor } = await listPayments(reads, filter);
        return { records: await toRecords(reads, payments), nextCursor };
      },
    },
    refunds: {
      list: (filter) => listRefunds(reads, filter),
      get: (id) => getRefund(reads, id),
    },
    stats: (filter) => paymentStats(reads, filter),
    stops: () => readStops(reads),
    books: createBooksReader(reads),
    relayers: () => listRelayers(reads),
    close,
  };
}
