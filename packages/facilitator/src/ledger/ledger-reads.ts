import { sql } from "kysely";
import type { LedgerReads } from "./ledger-context.ts";

/** Reads everything as of one moment, whatever is written meanwhile. */
export function inSnapshot<Result>(
  reads: LedgerReads,
  read: (snapshot: LedgerReads) => Promise<Result>,
): Promise<Result> {
  const { db, dialect } = reads;
  if (db.isTransaction) return read(reads);
  return db.transaction().execute(async (transaction) => {
    if (dialect.engine === "postgres") {
      await sql`set transaction isolation level repeatable read, read only`.execute(transaction);
    }
    return read({ db: transaction, dialect });
  });
}
