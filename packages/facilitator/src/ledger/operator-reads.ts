import { type Database, isInMemory, openDatabase } from "@coinslot/storage";
import type { LedgerReads } from "./ledger-context.ts";
import { createReadPace } from "./read-pace.ts";
import type { LedgerSchema } from "./schema.ts";

/**
 * Reads of operators, apart from those of buyers. On SQLite they are in a thread with its own
 * connection, on PostgreSQL over two connections of their own. So they hold neither the event loop
 * nor a connection that a buyer waits for. Beside buyers, long lists go at a pace. Opened at
 * the first read.
 */
export interface OperatorReads {
  run<Result>(read: (reads: LedgerReads) => Promise<Result>): Promise<Result>;
  /** A buyer is here: long lists give way for a second. */
  giveWay(): void;
  close(): Promise<void>;
}

const connections = 2;

/** @param main serves a ledger in memory, which has one connection alone */
export function createOperatorReads(url: string, main: LedgerReads): OperatorReads {
  const pace = createReadPace();
  let opening: Promise<Database<LedgerSchema>> | undefined;

  async function open(): Promise<LedgerReads> {
    opening ??= openDatabase<LedgerSchema>({
      url,
      readOnly: true,
      inThread: true,
      poolSize: connections,
      cacheMebibytes: 2,
      applicationName: "coinslot-operators",
    });
    try {
      const { kysely, dialect } = await opening;
      return { db: kysely, dialect };
    } catch (error) {
      opening = undefined;
      throw error;
    }
  }

  return {
    async run(read) {
      const reads = isInMemory(url) ? main : await open();
      return read({ db: reads.db, dialect: reads.dialect, pace });
    },
    giveWay: () => pace.giveWay(),
    async close() {
      pace.close();
      const database = await opening?.catch(() => undefined);
      await database?.close();
    },
  };
}
