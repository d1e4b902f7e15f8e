import { type Database, isInMemory, openDatabase } from "@coinslot/storage";
import type { LedgerReads } from "./ledger-context.ts";
import type { LedgerSchema } from "./schema.ts";

/**
 * Reads of operators, apart from those of buyers. On SQLite they are in a thread with its own
 * connection, on PostgreSQL over two connections of their own. So they hold neither the event loop
 * nor a connection that a buyer waits for. Opened at the first read.
 */
export interface OperatorReads {
  run<Result>(read: (reads: LedgerReads) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

const connections = 2;

/** @param main serves a ledger in memory, which has one connection alone */
export function createOperatorReads(url: string, main: LedgerReads): OperatorReads {
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
    run: async (read) => read(isInMemory(url) ? main : await open()),
    async close() {
      const database = await opening?.catch(() => undefined);
      await database?.close();
    },
  };
}
