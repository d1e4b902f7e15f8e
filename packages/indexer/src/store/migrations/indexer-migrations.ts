import { leasesMigration, type MigrateOptions } from "@coinslot/storage";
import { addVerification } from "./add-verification.ts";
import {
  addOutbox,
  addReverted,
  addToldFrom,
  addUnsent,
  addWatchedAddresses,
} from "./add-webhooks.ts";
import { createTables } from "./create-tables.ts";

/**
 * The schema of transfers and balances. Append-only and expand-only: a step that has landed never
 * changes.
 */
export const indexerMigrations: MigrateOptions = {
  name: "indexer",
  migrations: [
    leasesMigration,
    createTables,
    addVerification,
    addOutbox,
    addWatchedAddresses,
    addReverted,
    addToldFrom,
    addUnsent,
  ],
};
