import { createMutex } from "@coinslot/concurrency";
import { type Database, isDatabaseError, type Lease, type Leases } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import type { IndexerSchema } from "./schema.ts";

/** The lease was lost: it ran out while this process slept, and another process may write now. */
export class LeaseLostError extends Error {
  override readonly name = "LeaseLostError";

  constructor() {
    super("Another process may be the writer now");
  }
}

/** The right to write to a database of transfers. One process has it at a time. */
export interface WriterLease {
  /**
   * Runs `work` in a transaction in which no other process can take the writer lease. Transactions
   * run one after the other. So ids of events grow in the order of commits, and the lease is
   * renewed in between. Rejects with a `LeaseLostError`, or a `DatabaseError`.
   */
  write<Result>(
    work: (transaction: Transaction<IndexerSchema>) => Promise<Result>,
  ): Promise<Result>;
  /** Stays the holder for another `ttlMs`. */
  renew(ttlMs: number): Promise<void>;
  release(): Promise<void>;
}

export function createWriterLease(
  database: Database<IndexerSchema>,
  { leases, lease }: { leases: Leases; lease: Lease },
): WriterLease {
  const mutex = createMutex();

  return {
    write: (work) =>
      mutex.run(() =>
        database.transaction(async (transaction) => {
          // A transaction of this owner whose connection was lost may still commit. Its rows must
          // be visible here. Otherwise a rollback would leave its transfers behind, or subtract
          // them from the balances twice.
          await database.dialect.lockKey(transaction, lease.name);
          const { rows } = await sql`select 1 where ${leases.guard(lease)}`.execute(transaction);
          if (rows.length === 0) throw new LeaseLostError();
          return work(transaction);
        }),
      ),
    renew: (ttlMs) =>
      mutex.run(async () => {
        if ((await leases.renew(lease, { ttlMs })) === undefined) throw new LeaseLostError();
      }),
    release: () =>
      mutex
        .run(() => leases.release(lease))
        .catch((error: unknown) => {
          // The lease expires by itself.
          if (!isDatabaseError(error)) throw error;
        }),
  };
}
