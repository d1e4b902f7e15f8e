import { createWriter, type Database, isDatabaseError, type Writer } from "@coinslot/storage";
import type { LedgerSchema } from "./schema.ts";

const busyRetries = 4;

/** Writer of the ledger. A deadlock or a failed serialisation wrote nothing, so a retry is safe. */
export function createLedgerWriter(database: Database<LedgerSchema>): Writer<LedgerSchema> {
  const writer = createWriter(database);
  return {
    async write(work, options) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await writer.write(work, options);
        } catch (error) {
          if (!isDatabaseError(error, "busy") || attempt > busyRetries) throw error;
        }
      }
    },
  };
}
